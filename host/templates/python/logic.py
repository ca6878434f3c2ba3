"""What the guest thinks: plain Python that knows nothing of hosts and guests, so that tests need neither."""


def is_forced_push(command):
    words = command.split()
    return "push" in words and any(word in ("--force", "-f") for word in words[words.index("push") + 1 :])

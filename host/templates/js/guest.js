// Keeps shared branches as they are: a forced push needs a person.
//
// `event` and `effects` are the host's; `wit/deps/omc-hook/hook.wit` explains each of their functions, which have camelCase names
// here. An absent value is `undefined`, an error is thrown with its `payload`. A decision is `{ tag: 'pass' }`, `{ tag: 'allow' }`,
// or `ask`, `block` or `halt` with a reason in `val`.

export function isForcedPush(command) {
  const words = command.split(/\s+/);
  return words.slice(words.indexOf('push') + 1).some((word) => word === '--force' || word === '-f') && words.includes('push');
}

export const handler = {
  handle(event, effects) {
    // Whatever the agent calls its tool for commands; `undefined` if this is another tool.
    const command = event.toolCommand();
    if (event.kind() !== 'pre-tool-use' || command === undefined || !isForcedPush(command)) {
      return { tag: 'pass' };
    }
    effects.addContext('Shared branches are not rewritten in this project; push to a new branch instead.');
    return { tag: 'block', val: 'a forced push rewrites what others have' };
  },
};

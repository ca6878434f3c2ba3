import unittest

from logic import is_forced_push


class ForcedPush(unittest.TestCase):
    def test_a_forced_push_is_one(self):
        for command in ["git push --force", "git push origin main -f"]:
            self.assertTrue(is_forced_push(command), command)

    def test_other_commands_are_none_of_its_business(self):
        for command in ["git push", "rm -f notes", "echo --force"]:
            self.assertFalse(is_forced_push(command), command)


if __name__ == "__main__":
    unittest.main()

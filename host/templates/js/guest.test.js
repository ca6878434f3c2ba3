import assert from 'node:assert/strict';
import { test } from 'node:test';
import { handler } from './guest.js';

/// What the guest says about a command, and what it tells the model.
function running(command) {
  const context = [];
  const event = { kind: () => 'pre-tool-use', toolCommand: () => command };
  const effects = { addContext: (text) => context.push(text) };
  return { decision: handler.handle(event, effects), context };
}

test('a forced push is blocked, and the model told what to do', () => {
  for (const command of ['git push --force', 'git push origin main -f']) {
    const { decision, context } = running(command);
    assert.equal(decision.tag, 'block', command);
    assert.equal(context.length, 1, command);
  }
});

test('other commands are none of its business', () => {
  for (const command of ['git push', 'rm -f notes', 'echo --force', undefined]) {
    assert.deepEqual(running(command), { decision: { tag: 'pass' }, context: [] });
  }
});

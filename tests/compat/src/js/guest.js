// The frozen guest in JavaScript: it uses every function of `omc:hook` 0.1.0 and says what it got. See ../../README.md.
import { write as log } from 'omc:hook/log@0.1.0';
import { get as setting } from 'omc:hook/settings@0.1.0';
import { acquire } from 'omc:hook/state-lock@0.1.0';
import { tail } from 'omc:hook/transcript@0.1.0';
import { get as variable } from 'omc:hook/environment@0.1.0';
import { read, readStart, list, find } from 'omc:hook/project-files@0.1.0';
import { branch, head, changedPaths, addedLines } from 'omc:hook/git@0.1.0';
import { set as setVariable } from 'omc:hook/session-environment@0.1.0';

const shown = (value) => value ?? '-';

// What a call gave, or the name of its error.
const asked = (call) => {
  try {
    return shown(call());
  } catch (error) {
    const why = error.payload;
    return `error ${why?.tag ?? why ?? error}`;
  }
};

const paths = (event) => event.toolPaths().map(({ path, operation }) => `${operation} ${path}`).join(' ');

const event_facts = (event) => [
  `kind: ${event.kind()}`,
  `agent: ${event.agent()}`,
  `session-id: ${shown(event.sessionId())}`,
  `subagent-id: ${shown(event.subagentId())}`,
  `cwd: ${event.cwd() !== undefined}`,
  `project-root: ${event.projectRoot() !== undefined}`,
  `in-work-tree: ${event.inWorkTree()}`,
  `prompt: ${shown(event.prompt())}`,
  `tool-name: ${shown(event.toolName())}`,
  `field: ${shown(event.field('/number'))}`,
  `text: ${shown(event.text('/number'))}`,
  `permission-mode: ${shown(event.permissionMode())}`,
  `source: ${shown(event.source())}`,
  `tool-kind: ${shown(event.toolKind())}`,
  `tool-paths: ${asked(() => paths(event))}`,
  `tool-command: ${shown(event.toolCommand())}`,
  `tool-result: ${shown(event.toolResult())}`,
  `tool-failed: ${shown(event.toolFailed())}`,
  `tool-interrupted: ${event.toolInterrupted()}`,
];

// Twice, because a guest holds one at a time.
const locked = () => {
  acquire('guests/compat-js', 50).release();
  acquire('guests/compat-js', 50).release();
  return 'held';
};

const listed = () => list('project', '', 9).map(({ name, kind, size, modifiedMs }) => `${kind} ${name} ${size} ${modifiedMs > 0n}`).join(' ');

const found = () => {
  const { paths, complete } = find('project', '', 9);
  return `${paths.join(' ')} ${complete}`;
};

const changed = () => {
  const { paths, complete } = changedPaths(9);
  return `${paths.map(({ path, kind }) => `${kind} ${path}`).join(' ')} ${complete}`;
};

const capability_facts = (effects) => [
  `settings: ${shown(setting('no.such.key'))}`,
  `state-lock: ${asked(locked)}`,
  `transcript: ${asked(() => tail(64).trim())}`,
  `environment: ${asked(() => variable('CI'))}`,
  `read: ${asked(() => read('project', 'notes.md', 100).trim())}`,
  `read-start: ${asked(() => readStart('project', 'notes.md', 2))}`,
  `list: ${asked(listed)}`,
  `find: ${asked(found)}`,
  `branch: ${asked(branch)}`,
  `head: ${asked(() => head()?.length)}`,
  `changed-paths: ${asked(changed)}`,
  `added-lines: ${asked(() => [...addedLines('notes.md', 9)].join(' '))}`,
  `session-environment: ${asked(() => setVariable('COMPAT', '1') ?? 'set')}`,
  `add-message: ${asked(() => effects.addMessage('a message') ?? 'added')}`,
  `update-input: ${asked(() => effects.updateInput('{"command":"true"}') ?? 'updated')}`,
];

export const handler = {
  handle(event, effects) {
    const wanted = event.text('/compat');
    if (wanted === 'fail') {
      throw 'on purpose';
    }
    log('info', `asked for ${shown(wanted)}`);
    const facts = event_facts(event);
    if (wanted === 'everything') {
      facts.push(...capability_facts(effects));
    }
    effects.addContext(facts.join('\n'));
    switch (wanted) {
      case 'allow':
        return { tag: 'allow' };
      case 'ask':
      case 'block':
      case 'halt':
        return { tag: wanted, val: `for the reason ${wanted}` };
      default:
        return { tag: 'pass' };
    }
  },
};

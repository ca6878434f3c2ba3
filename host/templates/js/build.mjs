// Makes `guest.wasm` of `guest.js`, and puts the manifest `guest.toml` on it.
import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const { component } = await componentize(await readFile('guest.js', 'utf8'), {
  // Relative to the folder that this runs in.
  witPath: 'wit',
  worldName: 'guest',
  // Without these the guest imports nothing of WASI, and an audit shows its own imports alone.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile('guest.wasm', component);
const { status, error } = spawnSync('omc-host', ['guests', 'pack', 'guest.wasm'], { stdio: 'inherit' });
if (error) {
  console.error('omc-host is not on PATH, so guest.wasm has no manifest yet; run `omc-host guests pack guest.wasm`');
}
process.exitCode = status ?? 1;

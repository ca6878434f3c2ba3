// node build.mjs WIT OUT: builds the guest for the world `guest` of a WIT file.
import { readFile, writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const [wit, out] = process.argv.slice(2);
const { component } = await componentize(await readFile(new URL('guest.js', import.meta.url), 'utf8'), {
  witPath: wit,
  worldName: 'guest',
  // Without these nothing of WASI is imported, and nothing can be asked for.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile(out, component);

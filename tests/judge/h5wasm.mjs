// Writes or reads an HDF5 file with h5wasm and its plugins of filters: node h5wasm.mjs FOLDER < TASK, with the folder of contrib/h5wasm.
//
//     {"file": PATH, "write": [{"name", "dtype", "shape", "maxshape", "chunks", "compression", "compression_opts", "data"}, ...]}
//     {"file": PATH, "read": {NAME: PATH, ...}}
//
// compression: the id of a filter, and compression_opts its client data; data: the path of a file with the elements. What is read is written
// to the paths.
import { readFileSync, writeFileSync } from "node:fs";

const packages = `${process.argv[2]}/node_modules`;
const { default: h5wasm } = await import(`${packages}/h5wasm/dist/node/hdf5_hl.js`);
const plugins = await import(`${packages}/h5wasm-plugins/index.mjs`);
const library = await h5wasm.ready;
library.activate_throwing_error_handler();
plugins.install_local_plugins(library);

const ARRAYS = { B: Uint8Array, h: Int16Array, i: Int32Array, q: BigInt64Array, f: Float32Array, d: Float64Array };
const task = JSON.parse(readFileSync(0, "utf8"));

function work() {
	const file = new h5wasm.File(task.file, task.write ? "w" : "r");
	for (const { data, ...dataset } of task.write ?? []) {
		const bytes = new Uint8Array(readFileSync(data));
		file.create_dataset({ ...dataset, data: new ARRAYS[dataset.dtype](bytes.buffer) });
	}
	for (const [name, path] of Object.entries(task.read ?? {}))
		writeFileSync(path, new Uint8Array(file.get(name).value.buffer));
	file.close();
}

// Else node shows the line of the program that has failed, which is megabytes long.
try {
	work();
} catch (error) {
	console.error(String(error.message ?? error));
	process.exit(1);
}

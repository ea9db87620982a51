// Compiles every .py below a folder with the CPython that pyodide is, and prints that CPython's version.
// Arguments: pyodide.mjs, the folder, the path that tracebacks shall show, the magic number expected.
import { pathToFileURL } from "node:url";

const [pyodide, folder, shown, magic] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(pyodide));
const python = await loadPyodide();
python.mountNodeFS(shown, folder);
python.globals.set("folder", shown);
const [version, found] = python
  .runPython("import importlib.util, platform; [platform.python_version(), importlib.util.MAGIC_NUMBER.hex()]")
  .toJs();
if (found !== magic) {
  console.error(`its bytecode is of another Python: ${version}`);
  process.exit(1);
}
// Whether each source compiled, the caller sees in what is there.
python.runPython(`
import compileall, py_compile
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
compileall.compile_dir(folder, quiet=2, force=True, invalidation_mode=mode)
`);
console.log(version);
process.exit(0);

"""Where CUDA's libraries are on this machine, and which are not: for scripts/gpu_check."""
import ctypes
import glob
import os
import pathlib
import re
import shutil
import subprocess

BESIDE_PYTORCH = "beside PyTorch"
DRIVER = "libcuda.so.1"
CUDA_NAMES = ("libcu", "libnv")
TOOLKITS = ("/usr/local/cuda*", "/opt/cuda*", "/usr/lib/cuda")
DRIVER_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
                  "/usr/lib/wsl/lib", "/usr/local/cuda/compat")
# What a library is part of, for those who have to install it.
PARTS = (
    (r"libcudnn", "cuDNN 9: pip install nvidia-cudnn-cu13, or PyTorch for CUDA 13"),
    (r"libcublas", "cuBLAS of CUDA 13: pip install nvidia-cublas"),
    (r"libcusparse", "cuSPARSE of CUDA 13: pip install nvidia-cusparse"),
    (r"libcusolver|libnvJitLink", "cuSOLVER of CUDA 13: pip install nvidia-cusolver"),
    (r"libcudart|libnvrtc", "the CUDA 13 runtime: pip install nvidia-cuda-runtime"),
    (r"libcuda\.", "the NVIDIA driver"),
)
SITES = "import sys; print(*(p for p in sys.path if p), sep='\\n')"


def python_folders(python):
    """Folders that `python` imports from; none where there is no such program."""
    if not python or not shutil.which(python):
        return []
    done = subprocess.run([python, "-c", SITES], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.split("\n") if done.returncode == 0 else []


def holds_any(folder, names):
    return any((pathlib.Path(folder) / name).exists() for name in names)


def versioned(names):
    """Those whose name tells CUDA's version; cuDNN's is the same for several."""
    return [name for name in names if not name.startswith("libcudnn")]


def candidate_folders(python="python3", environment=os.environ, toolkits=TOOLKITS):
    """[(where, folder)] in the order in which they are tried; PyTorch's before the toolkit's, so that both load the same."""
    found = [("LD_LIBRARY_PATH", folder) for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for site in python_folders(python):
        found += [(BESIDE_PYTORCH, folder) for folder in sorted(glob.glob(f"{site}/nvidia/*/lib"))]
        found += [(BESIDE_PYTORCH, folder) for folder in glob.glob(f"{site}/torch/lib")]
    for pattern in toolkits:
        for root in sorted(glob.glob(pattern), reverse=True):
            found += [("toolkit", f"{root}/{name}") for name in ("lib64", "lib", "targets/x86_64-linux/lib")]
    found += [("driver", folder) for folder in DRIVER_FOLDERS]
    unique = {}
    for where, folder in found:
        if pathlib.Path(folder).is_dir() and (folder not in unique or where == BESIDE_PYTORCH):
            unique[folder] = where
    return [(where, folder) for folder, where in unique.items()]


def needed_by(program, library_path):
    """{library: path, or None where the loader does not find it} of a program and of what it needs in turn."""
    environment = {**os.environ, "LD_LIBRARY_PATH": library_path, "LC_ALL": "C"}
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, env=environment, timeout=60, check=False)
    return read_ldd(done.stdout)


def read_ldd(text):
    needed = {}
    for name, path in re.findall(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", text, re.MULTILINE):
        needed[name] = None if path == "not found" else path
    return needed


def search_path(programs, folders, packed):
    """(LD_LIBRARY_PATH, {library: None} of those that are in no folder).

    Only folders that hold something needed are named, in the order of `folders`; `packed`, the bundle's own, is the last. CUDA's
    libraries are PyTorch's where it is for the same CUDA, though the loader may know others: its rows and ours are of the same.
    """
    needed = {name for program in programs for name in needed_by(program, packed) if name.startswith(CUDA_NAMES)}
    beside_pytorch = [folder for where, folder in folders if where == BESIDE_PYTORCH and holds_any(folder, needed)]
    chosen = beside_pytorch if any(holds_any(folder, versioned(needed)) for folder in beside_pytorch) else []
    missing = {}
    while True:
        missing = {}
        for program in programs:
            path = ":".join([*chosen, packed])
            missing.update((name, None) for name, found in needed_by(program, path).items() if found is None)
        extra = next((folder for _, folder in folders for name in missing
                      if folder not in chosen and (pathlib.Path(folder) / name).exists()), None)
        if extra is None:
            break
        chosen.append(extra)
    return ":".join([*chosen, packed]), missing


def with_driver(library_path, gpu, callers):
    """The path, and behind it the folders that the driver, which is loaded by name, was found in."""
    of_caller = [folder for folder in callers.split(":") if folder and (pathlib.Path(folder) / DRIVER).exists()]
    return ":".join(folder for folder in (library_path, gpu.get("folder", ""), *of_caller) if folder)


def explain_missing(missing, folders):
    """The lines that say what is missing, from where it comes, and where it was looked for."""
    lines = ["missing libraries:"]
    for name in sorted(missing):
        part = next((what for pattern, what in PARTS if re.match(pattern, name)), "not part of CUDA: a package of this system")
        lines.append(f"  {name}  ({part})")
    lines.append("looked in:")
    lines += [f"  {folder}  ({where})" for where, folder in folders] + ["  what ldconfig knows"]
    return lines


def find_gpu(folders):
    """{"gpu": name, "driver": version, "count": n, "folder": of the driver} of the first GPU, or {"why": reason}.

    The folder is "" where the loader knows the driver; else programs need it in LD_LIBRARY_PATH: they load it by name.
    """
    driver, found = None, ""
    for folder in ["", *(folder for _, folder in folders)]:
        try:
            driver, found = ctypes.CDLL(f"{folder}/{DRIVER}" if folder else DRIVER), folder
            break
        except OSError:
            continue
    if driver is None:
        return {"why": "no CUDA driver (libcuda.so.1) is installed"}
    status = driver.cuInit(0)
    count = ctypes.c_int(0)
    if status != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return {"why": f"the CUDA driver shows no GPU (cuInit: {status})"}
    name = ctypes.create_string_buffer(256)
    device = ctypes.c_int(0)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, 256, device)
    return {"gpu": name.value.decode(), "driver": driver_version(), "count": count.value, "folder": found}


def driver_version():
    try:
        text = pathlib.Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    found = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", text.partition("Module")[2] or text)
    return found.group(1) if found else "unknown"


def find_tool(name):
    """A program of the toolkit, on PATH or in its folders; None where there is none."""
    places = [shutil.which(name)]
    for pattern in TOOLKITS:
        for root in sorted(glob.glob(pattern), reverse=True):
            places += [f"{root}/bin/{name}", f"{root}/{name}/{name}"]
    return next((place for place in places if place and os.access(place, os.X_OK)), None)

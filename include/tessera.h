/*
 * Runs networks that tessera trained, dense, factored or sparse, from other programs. Plain C99; link libtessera.
 *
 *   tessera_network *network;
 *   if (tessera_load("runs/digits/1", NULL, &network) != TESSERA_OK) puts(tessera_last_error());
 *   tessera_run(network, &image, 1, &scores, 1);
 *   tessera_free(network);
 *
 * Errors. Every function that can fail returns a status, TESSERA_OK or what went wrong, and writes nothing for the caller
 * unless it is TESSERA_OK; tessera_last_error() then says it in words that name the operand, what it is and what it must be.
 * Nothing is printed, no function ends the program, and no exception leaves the library. The runtime of OpenMP ends the program
 * where the system has no thread left for it.
 *
 * Ownership. The library keeps no pointer that it was given behind the end of the call. What it returns belongs to the
 * network, but for tessera_last_error().
 *
 * Threads. Every function but tessera_free() may be called from several threads at once, with one network or with several. A
 * network computes on a thread of its own, which tessera_load() starts, and on the threads that this one asks for: runs of
 * one network are taken one after another, those of different networks at the same time. The network's threads have the
 * processors that the thread that loaded it may use, and take no signals. A process forks while no function of this library
 * is under way, and its child loads networks of its own: those of the parent are refused there.
 *
 * Numbers. Networks compute on the CPU, in the precision of their training unless another one is asked for. Batch norms are
 * folded into the convolutions before them, as `tessera table` times networks. The answers are those of `tessera eval` up to
 * rounding, and the same bytes in every run of the same inputs by the same library, processor and number of threads: choices
 * between kernels are those that the checkpoint or file recorded, and no clock is read. A recorded choice that the processor
 * lacks is replaced by the first one that it has.
 *
 * Memory. What is prepared for a batch size is kept until tessera_free(), in places with a copy of the weights: a program
 * that sees many sizes keeps to a few.
 */
#ifndef TESSERA_H
#define TESSERA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TESSERA_API __attribute__((visibility("default")))
#else
#define TESSERA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when a program that was built against an older header would no longer work; it is the number in libtessera.so.N too. */
#define TESSERA_ABI_VERSION 1
/* Of the library that is loaded. */
TESSERA_API int32_t tessera_abi_version(void);
/* "0.1.0 (3c36e2f)": version and commit of the library. Never freed. */
TESSERA_API const char *tessera_version(void);

typedef int32_t tessera_status;
enum {
  TESSERA_OK = 0,
  TESSERA_BAD_ARGUMENT = 1, /* a null, a shape, a dtype, a path or an option that cannot be */
  TESSERA_BAD_FILE = 2,     /* a file that cannot be read, is damaged, or holds weights that are NaN or infinite */
  TESSERA_NO_MEMORY = 3,
  TESSERA_FAILED = 4 /* anything else: a fault of the library */
};

/* What the last call of this thread that failed said; "" before the first. Stands until another call of this thread fails. */
TESSERA_API const char *tessera_last_error(void);

typedef struct tessera_network tessera_network;

typedef struct tessera_options {
  size_t size;           /* sizeof(tessera_options): later versions add members at the end, which mean nothing where they are 0 */
  int32_t threads;       /* as in tessera_set_threads() */
  const char *at;        /* of a run folder: the name of a stage for its end, a step, or "best"; NULL: the newest checkpoint */
  const char *precision; /* "f32" or "bf16"; NULL: that of the training, which the CPU must have (not f16 and tf32) */
} tessera_options;

/*
 * Loads a network from
 * - a run folder, runs/NAME/N: of its checkpoints the newest intact one, or the one that options->at names;
 * - the folder of one checkpoint, runs/NAME/N/checkpoints/step-N;
 * - a file of `tessera compress` or `tessera export --layout tessera`. Other safetensors files hold tensors and no network, and
 *   are refused.
 * Every byte is compared with the checkpoint's hashes. The weights are those that the run evaluates: moving averages where it
 * has them. Inside a stage with averages, batch norms have the statistics of the last evaluation, moved on by the steps since.
 * options may be NULL: every processor, the newest checkpoint, the precision of the training, f32 where that is not known.
 */
TESSERA_API tessera_status tessera_load(const char *path, const tessera_options *options, tessera_network **network);

/* Ends the network's threads and releases it. No other call on it may be under way or come after. NULL is let be. */
TESSERA_API void tessera_free(tessera_network *network);

/*
 * What the network is, as JSON text, which belongs to it:
 *   {"task": "classification",              what it was trained for, null where that is not known
 *    "origin": {"run": ..., "stage": ..., "step": ...} or {"file": ...},
 *    "passed_over": [...],                  newer checkpoints that are damaged, a sentence each
 *    "precision": "f32",
 *    "inputs": [{"name": "image", "dtype": "float32", "shape": [28, 28, 1], "optional": false, "pixels": true}],
 *    "outputs": [{"name": "scores", "dtype": "float32", "shape": [10]}],
 *    "parameters": 61706,                   numbers that were trained
 *    "macs": 416520,                        multiply-adds of one sample
 *    "compressed_layers": [{"path": "conv2", "kind": "tucker2_conv2d", "ranks": {"out": 4, "in": 4}, "parameters": 312}],
 *    "classes": [...], "preprocessing": {"mean": [...], "std": [...]}}     of networks that learnt from images
 * Shapes are those of one sample; buffers have the batch in front. Images are height, width, channels. "pixels": the input
 * may also be uint8, which is then brought to the network as in training, (x / 255 - mean) / std of each channel. Tokens are
 * int64 in [0, "limit"), as "segments" are, and may be a sequence of another length than "shape", up to "longest" where that
 * is not 0.
 */
TESSERA_API tessera_status tessera_describe(const tessera_network *network, const char **json);

/* 0: every processor that the network's threads may use; else that many, up to 1024. Takes effect after the runs that are under way. */
TESSERA_API tessera_status tessera_set_threads(tessera_network *network, int32_t threads);

typedef int32_t tessera_dtype;
enum { TESSERA_FLOAT32 = 0, TESSERA_INT64 = 1, TESSERA_UINT8 = 2 };

enum { TESSERA_MOST_AXES = 8 };

/* A buffer of the caller's: the elements of the last axis one behind the other, no gaps, aligned to an element. */
typedef struct tessera_tensor {
  const char *name; /* NULL: the first input, or the first output */
  tessera_dtype dtype;
  int32_t rank;
  const int64_t *shape; /* `rank` sizes, the batch in front */
  void *data;           /* inputs are only read */
} tessera_tensor;

/*
 * What the network says of a batch: inputs as tessera_describe() lists them, those that are optional may be left out; one
 * output, float32 [batch, ...], which is written. The batch is any number from 1 on. float32 and int64 inputs are read where
 * they are; uint8 pixels become a tensor of their own.
 */
TESSERA_API tessera_status tessera_run(tessera_network *network, const tessera_tensor *inputs, int32_t input_count,
                                       const tessera_tensor *outputs, int32_t output_count);

/* The shape of the output that tessera_run() would write for these inputs, whose `data` is not looked at. `shape` has room for
 * TESSERA_MOST_AXES sizes. */
TESSERA_API tessera_status tessera_output_shape(tessera_network *network, const tessera_tensor *inputs, int32_t input_count,
                                                int64_t *shape, int32_t *rank);

#ifdef __cplusplus
}
#endif

#endif

/*
 * Tells the class of an image: classify NETWORK IMAGE
 * NETWORK is a run folder of tessera, trained on grey images of 28 x 28; IMAGE a file of their 784 bytes, row by row.
 *
 *   cc -std=c99 classify.c -o classify $(pkg-config --cflags --libs tessera)
 */
#include <stdio.h>
#include <tessera.h>

enum { SIDE = 28, MOST_CLASSES = 1000 };

int main(int argc, char **argv) {
  static uint8_t pixels[SIDE * SIDE];
  static float scores[MOST_CLASSES];
  const int64_t image_shape[] = {1, SIDE, SIDE, 1}; /* a batch of one: height, width, channels */
  int64_t shape[TESSERA_MOST_AXES];
  const tessera_tensor image = {NULL, TESSERA_UINT8, 4, image_shape, pixels};
  tessera_tensor answer = {NULL, TESSERA_FLOAT32, 0, shape, scores};
  tessera_network *network = NULL;
  FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  int64_t best = 0, i;
  if (file == NULL || fread(pixels, 1, sizeof pixels, file) != sizeof pixels) {
    fprintf(stderr, "usage: classify NETWORK IMAGE, a file of %d bytes\n", SIDE * SIDE);
    return 2;
  }
  fclose(file);
  if (tessera_load(argv[1], NULL, &network) != TESSERA_OK ||
      tessera_output_shape(network, &image, 1, shape, &answer.rank) != TESSERA_OK) {
    fprintf(stderr, "classify: %s\n", tessera_last_error());
    return 1;
  }
  if (answer.rank != 2 || shape[1] > MOST_CLASSES) {
    fprintf(stderr, "classify: the network does not answer with the scores of at most %d classes\n", MOST_CLASSES);
    return 1;
  }
  if (tessera_run(network, &image, 1, &answer, 1) != TESSERA_OK) {
    fprintf(stderr, "classify: %s\n", tessera_last_error());
    return 1;
  }
  for (i = 1; i < shape[1]; ++i) best = scores[i] > scores[best] ? i : best;
  printf("class %d, score %g\n", (int)best, scores[best]);
  tessera_free(network);
  return 0;
}

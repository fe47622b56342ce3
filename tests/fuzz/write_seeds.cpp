// write_seeds TARGET FOLDER: writes the target's generated seeds into the folder, which exists.
#include <cstdio>
#include <exception>
#include <fstream>

#include "tests/fuzz/targets.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write_seeds TARGET FOLDER\n");
    return 2;
  }
  try {
    int number = 0;
    for (const std::string& seed : tessera::fuzz::target(argv[1]).seeds()) {
      const std::string path = std::string(argv[2]) + "/seed-" + std::to_string(number++);
      std::ofstream out(path, std::ios::binary);
      if (!(out << seed)) throw std::runtime_error("cannot write " + path);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_seeds: %s\n", error.what());
    return 1;
  }
}

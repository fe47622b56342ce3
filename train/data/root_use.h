// What a form of the data block does with the key `root`.
#pragma once

namespace tessera {

enum class RootUse {
  none,  // its samples are drawn, not read
  needed,  // the folder of its files
  optional,  // where it is given, the folder that names of files are relative to
};

}  // namespace tessera

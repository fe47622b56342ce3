// Entry points for fuzzing: one function per reader of files. Each feeds the bytes to its reader and swallows the errors that the
// reader promises. Another exception, a sanitizer's report or a broken property (thrown as Finding) is a finding.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::fuzz {

class Finding final : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
inline void require(bool holds, const char* property) {
  if (!holds) throw Finding(property);
}

// An experiment file; behind a zero byte each, overrides of it. What is accepted reads back from its resolved form.
void experiment(std::string_view bytes);
// What is accepted is the same after writing and reading again.
void safetensors(std::string_view bytes);
// A file that holds a network; also a module tree and, behind a zero byte, its input, beside tensors that fit. What is accepted
// is the same network after writing and reading again.
void network(std::string_view bytes);
bool accepts_network(std::string_view bytes);  // the same, and whether a network was read in either way
// MANIFEST.json as it stands, and as the body of one whose seal is right.
void manifest(std::string_view bytes);
void json(std::string_view bytes);
// An IDX file; of images and labels also the data set that it makes with a partner that fits.
void idx(std::string_view bytes);
// A CIFAR-10 and a CIFAR-100 file of as many records as fit.
void cifar(std::string_view bytes);
// JPEG or PNG, decoded, cut and resized in every way.
void image(std::string_view bytes);
// Vocabularies of tokenizers and, behind zero bytes, a text: its tokens are in the vocabulary, cuts change none, BPE gives it
// back. Also the body of a file of tokens whose checksum is right.
void tokenizer(std::string_view bytes);

// NumPy's arrays, read whole and in pieces. What is accepted is the same after writing and reading again.
void npy(std::string_view bytes);
// A file that tessera_load() is given, and choices of what tessera_run() is given: every call has a status of the header's and
// writes nothing unless it succeeds.
void c_interface(std::string_view bytes);

std::vector<std::string> experiment_seeds();
std::vector<std::string> safetensors_seeds();
std::vector<std::string> network_seeds();
std::vector<std::string> manifest_seeds();
std::vector<std::string> json_seeds();
std::vector<std::string> idx_seeds();
std::vector<std::string> cifar_seeds();
std::vector<std::string> image_seeds();
std::vector<std::string> tokenizer_seeds();
std::vector<std::string> npy_seeds();
std::vector<std::string> c_interface_seeds();

struct Target {
  std::string_view name;
  void (*run)(std::string_view bytes);
  std::vector<std::string> (*seeds)();  // valid files to begin from
};
std::span<const Target> targets();
// Throws std::out_of_range on an unknown name.
const Target& target(std::string_view name);

}  // namespace tessera::fuzz

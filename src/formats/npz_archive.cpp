#include "formats/npz_archive.h"

#include "base/utf8.h"
#include "formats/byte_reader.h"
#include "formats/npy_header.h"

namespace fovea {
namespace {

constexpr std::string_view kExtension = ".npy", kOptions = "special:model.yml";
constexpr uint64_t kMostOptions = uint64_t{1} << 20;

}  // namespace

NpzArchive::NpzArchive(FileBytes file)
    : TensorArchive(file.path), zip_(std::move(file), ZipNames::complete) {
  for (const std::string& entry : zip_.names()) read_entry(entry);
}

void NpzArchive::read_entry(const std::string& entry) {
  check(entry.ends_with(kExtension), ExitCode::model, path(), ": entry '", printable(entry),
        "': its name does not end in .npy; expected are the arrays of NumPy");
  const std::string where = zip_.path_of(entry);
  const std::vector<std::byte> start = zip_.beginning(entry, kMaxNpyHeader);
  ByteReader reader(start, where);
  ArchivedTensor tensor =
      read_npy_header(reader, entry.substr(0, entry.size() - kExtension.size()));
  const uint64_t header = reader.position(), size = checked_size(tensor, path());
  const uint64_t found = zip_.size_of(entry) - header;
  if (size != found)
    reader.fault("shape and type need ", size, " bytes, the array has ", found, " (truncated?)");
  if (tensor.name == kOptions) {
    check(tensor.type == StoredType::I8 && size <= kMostOptions, ExitCode::model, where,
          ": the options are no text of at most ", kMostOptions, " bytes");
    const std::string all = zip_.read_text(entry, kMostOptions + kMaxNpyHeader);
    const std::string text = all.substr(header, all.find('\0', header) - header);
    check(is_utf8(text), ExitCode::model, where, ": the options are not UTF-8");
    set_metadata(tensor.name, text);
    return;
  }
  add(std::move(tensor));
  places_.push_back({entry, header});
}

TensorBytes NpzArchive::bytes_at(size_t index) const {
  const Place& place = places_[index];
  const FileBytes file = zip_.read(place.entry);
  return {file.bytes.subspan(place.header), file.owner};
}

}  // namespace fovea

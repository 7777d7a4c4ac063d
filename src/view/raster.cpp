#include "view/raster.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>

#include "base/check.h"

namespace fovea {
namespace {

constexpr double kLongestSide = 32'000;  // in pixels; cairo's images have at most 32,767

// Note [A library on demand]
// librsvg depends on about fifty libraries. If the program were linked with librsvg, each command
// would load them, and each build would need their headers. So the program loads librsvg only when
// it writes a PNG picture. The declarations below are the parts of the interfaces of librsvg and
// cairo that the program uses (librsvg-2.so.2 since 2.52, libcairo.so.2). They are C functions. As
// long as they have these names, their types cannot change.
struct Rectangle {
  double x, y, width, height;
};
struct GlibError {
  uint32_t domain;
  int code;
  char* message;
};
constexpr int kArgb32 = 0;
constexpr int kSuccess = 0, kNoMemory = 1;

void* opened() {
  void* const found = dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
  check(found != nullptr, ExitCode::files, "PNG pictures are painted by librsvg, which cannot be ",
        "loaded (", dlerror(), "); install it (Debian: librsvg2-2), or write `svg` instead");
  return found;
}

// The functions of both libraries that the program uses, with short names.
struct Library {
  void* handle = opened();  // never closed: GLib cannot be unloaded

  using Read = void* (*)(const uint8_t*, size_t, GlibError**);
  using Size = int (*)(void*, double*, double*);
  using Paint = int (*)(void*, void*, const Rectangle*, GlibError**);
  using NewImage = void* (*)(int, int, int);
  using NewBrush = void* (*)(void*);
  using End = void (*)(void*);
  using Status = int (*)(void*);
  using Append = int (*)(void*, const unsigned char*, unsigned);
  using Write = int (*)(void*, Append, void*);
  Read read = symbol<Read>("rsvg_handle_new_from_data");
  Size size = symbol<Size>("rsvg_handle_get_intrinsic_size_in_pixels");
  Paint paint = symbol<Paint>("rsvg_handle_render_document");
  End end_picture = symbol<End>("g_object_unref");
  NewImage new_image = symbol<NewImage>("cairo_image_surface_create");
  Status status_of_image = symbol<Status>("cairo_surface_status");
  End end_image = symbol<End>("cairo_surface_destroy");
  NewBrush new_brush = symbol<NewBrush>("cairo_create");
  End end_brush = symbol<End>("cairo_destroy");
  Write write = symbol<Write>("cairo_surface_write_to_png_stream");

  // Returns the function of this name. dlsym also searches the libraries on which librsvg depends,
  // cairo and GObject.
  template <class Function>
  Function symbol(const char* name) const {
    void* const found = dlsym(handle, name);
    check(found != nullptr, ExitCode::files, "this system's librsvg has no ", name,
          "; version 2.52 or later is needed for PNG pictures, or write `svg` instead");
    return reinterpret_cast<Function>(found);
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

using Held = std::unique_ptr<void, void (*)(void*)>;

void check_done(bool done, const GlibError* error) {
  check(done, ExitCode::unexpected,
        "librsvg: ", error && error->message ? error->message : "no reason");
}

// A callback for cairo, which appends to a string. It must not throw, because cairo is written in
// C.
int append(void* bytes, const unsigned char* data, unsigned count) {
  try {
    static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), count);
    return kSuccess;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

void check_memory(bool there, const Rectangle& picture) {
  check(there, ExitCode::memory, "there is no memory for a picture of ", picture.width, " × ",
        picture.height, " pixels (", std::ceil(picture.width * picture.height * 4 / (1 << 20)),
        " MiB); end other programs, write `svg` instead of `png`, or draw a shorter pair");
}

}  // namespace

std::string png_of(const std::string& svg, double scale) {
  const Library& with = library();
  GlibError* error = nullptr;
  const Held picture(with.read(reinterpret_cast<const uint8_t*>(svg.data()), svg.size(), &error),
                     with.end_picture);
  check_done(picture != nullptr, error);
  Rectangle all{};
  check_done(with.size(picture.get(), &all.width, &all.height) != 0, nullptr);
  const double most = std::min(scale, kLongestSide / std::max(all.width, all.height));
  all.width = std::max(1.0, std::round(all.width * most));
  all.height = std::max(1.0, std::round(all.height * most));

  const Held image(
      with.new_image(kArgb32, static_cast<int>(all.width), static_cast<int>(all.height)),
      with.end_image);
  check_memory(with.status_of_image(image.get()) == kSuccess, all);
  const Held brush(with.new_brush(image.get()), with.end_brush);
  const bool painted = with.paint(picture.get(), brush.get(), &all, &error) != 0;
  check_memory(with.status_of_image(image.get()) != kNoMemory, all);
  check_done(painted, error);
  std::string bytes;
  check_memory(with.write(image.get(), append, &bytes) == kSuccess, all);
  return bytes;
}

}  // namespace fovea

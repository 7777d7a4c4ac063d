#include "formats/pickle_globals.h"

#include <array>

namespace fovea {
namespace {

constexpr std::array kGlobals = {
    PickleGlobalRow{"collections", "OrderedDict", PickleGlobal::ordered_dict},
    PickleGlobalRow{"argparse", "Namespace", PickleGlobal::namespace_class},
    PickleGlobalRow{"torch._utils", "_rebuild_tensor", PickleGlobal::rebuild_tensor},
    PickleGlobalRow{"torch._utils", "_rebuild_tensor_v2", PickleGlobal::rebuild_tensor},
    PickleGlobalRow{"torch._utils", "_rebuild_parameter", PickleGlobal::rebuild_parameter},
    PickleGlobalRow{"torch", "FloatStorage", PickleGlobal::storage_class, StoredType::F32},
    PickleGlobalRow{"torch", "HalfStorage", PickleGlobal::storage_class, StoredType::F16},
    PickleGlobalRow{"torch", "BFloat16Storage", PickleGlobal::storage_class, StoredType::BF16},
    PickleGlobalRow{"torch", "DoubleStorage", PickleGlobal::storage_class, StoredType::F64},
    PickleGlobalRow{"torch", "LongStorage", PickleGlobal::storage_class, StoredType::I64},
    PickleGlobalRow{"torch", "IntStorage", PickleGlobal::storage_class, StoredType::I32},
    PickleGlobalRow{"torch", "ShortStorage", PickleGlobal::storage_class, StoredType::I16},
    PickleGlobalRow{"torch", "CharStorage", PickleGlobal::storage_class, StoredType::I8},
    PickleGlobalRow{"torch", "ByteStorage", PickleGlobal::storage_class, StoredType::U8},
    PickleGlobalRow{"torch", "BoolStorage", PickleGlobal::storage_class, StoredType::BOOL},
    PickleGlobalRow{"numpy.core.multiarray", "_reconstruct", PickleGlobal::ignored},
    PickleGlobalRow{"numpy.core.multiarray", "scalar", PickleGlobal::ignored},
    PickleGlobalRow{"numpy._core.multiarray", "_reconstruct", PickleGlobal::ignored},
    PickleGlobalRow{"numpy._core.multiarray", "scalar", PickleGlobal::ignored},
    PickleGlobalRow{"numpy", "ndarray", PickleGlobal::ignored},
    PickleGlobalRow{"numpy", "dtype", PickleGlobal::ignored},
    PickleGlobalRow{"_codecs", "encode", PickleGlobal::ignored},
};

}  // namespace

const PickleGlobalRow* find_pickle_global(std::string_view module, std::string_view name) {
  for (const PickleGlobalRow& row : kGlobals)
    if (row.module == module && row.name == name) return &row;
  return nullptr;
}

}  // namespace fovea

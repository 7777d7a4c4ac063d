"""Changes one field of the training state in a checkpoint and corrects its checksums.

  python3 tests/support/tamper.py CHECKPOINT FIELD VALUE
"""
import json, re, struct, sys


def crc32c(data):
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


path, field, value = sys.argv[1:]
with open(path, "rb") as file:
    length, = struct.unpack("<Q", file.read(8))
    header, data = json.loads(file.read(length)), file.read()
metadata = header["__metadata__"]
state = json.loads(metadata["fovea.state"])
state[field] = json.loads(value)
metadata["fovea.state"] = json.dumps(state)
metadata["header_crc32c"] = "00000000"
text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
text += b" " * (-len(text) % 8)
whole = struct.pack("<Q", len(text)) + text
digits = f"{crc32c(whole):08x}".encode()
whole = re.sub(rb'("header_crc32c":")0{8}', rb"\g<1>" + digits, whole)
with open(path, "wb") as file:
    file.write(whole + data)

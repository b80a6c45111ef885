import Glibc

extension [UInt8] {
    /// Whether the text stands anywhere in the octets. By hand, since it is looked for in everything that is said.
    func contains(canary text: StaticString) -> Bool {
        withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            let size = text.utf8CodeUnitCount
            var offset = 0
            while offset + size <= bytes.count,
                let found = memchr(start + offset, Int32(text.utf8Start[0]), bytes.count - offset)
            {
                offset = UnsafeRawPointer(found) - start
                if offset + size <= bytes.count, memcmp(start + offset, text.utf8Start, size) == 0 { return true }
                offset += 1
            }
            return false
        }
    }
}

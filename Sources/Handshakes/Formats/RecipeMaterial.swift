/// The material of a recipe's layer: the values that its steps took, as bytes for the environment.
enum RecipeMaterial {
    typealias Values = [String: [String: Secret]]

    private static let version: UInt8 = 1
    private static let most = 64

    static func encode(_ values: Values) -> Secret {
        var bytes: [UInt8] = []
        // Enough at once, so that no growth leaves a copy behind.
        bytes.reserveCapacity(
            64
                + values.values.reduce(0) { total, takes in
                    total + takes.reduce(0) { $0 + 160 + $1.value.count }
                })
        bytes.append(version)
        for (step, takes) in values.sorted(by: { $0.key < $1.key }) {
            for (name, value) in takes.sorted(by: { $0.key < $1.key }) {
                put(Array(step.utf8), &bytes)
                put(Array(name.utf8), &bytes)
                value.withBytes { value in
                    count(value.count, &bytes)
                    bytes.append(contentsOf: value)
                }
            }
        }
        return Secret(taking: &bytes)
    }

    /// nil for anything that `encode` does not make: then the layer counts as empty.
    static func decode(_ material: Secret) -> Values? {
        material.withBytes { bytes in
            guard bytes.first == version else { return nil }
            var values: Values = [:]
            var at = 1
            func next() -> UnsafeRawBufferPointer? {
                guard at + 4 <= bytes.count else { return nil }
                let count = bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) }
                guard count <= bytes.count - at - 4 else { return nil }
                defer { at += 4 + count }
                return UnsafeRawBufferPointer(rebasing: bytes[(at + 4)..<(at + 4 + count)])
            }
            var entries = 0
            while at < bytes.count {
                entries += 1
                guard entries <= most * 8, let step = next(), let name = next(), let value = next() else { return nil }
                values[String(decoding: step, as: UTF8.self), default: [:]][String(decoding: name, as: UTF8.self)] =
                    Secret(value)
            }
            return values
        }
    }

    private static func put(_ text: [UInt8], _ bytes: inout [UInt8]) {
        count(text.count, &bytes)
        bytes += text
    }

    private static func count(_ count: Int, _ bytes: inout [UInt8]) {
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
    }
}

internal import Configuration
internal import Glibc
internal import TLS
internal import Telemetry
internal import TokenStore

/// The sealing keys that the configuration names, or that stand beside the store; read anew whenever they are asked for, because an
/// operator replaces one while the gateway serves.
struct StoreKeys: Sendable {
    struct Problem: Error { let text: String }

    let path: String
    let references: [SecretReference]
    let policy: SecretFilePolicy
    let environment: @Sendable (String) -> String?

    init(_ configuration: Configuration, path: String, environment: @escaping @Sendable (String) -> String?) {
        self.path = path
        references = configuration.store.keys
        policy = configuration.secretFiles
        self.environment = environment
    }

    /// Whether the configuration names no key: then the file beside the store is ours to make and to change.
    var isOurFile: Bool { references.isEmpty }

    func read(events: EventLog? = nil) throws(Problem) -> SealingKeyRing {
        let keys = try isOurFile ? ownKeys(events) : namedKeys()
        do { return try SealingKeyRing(keys) } catch { throw Problem(text: "store.key: \(error)") }
    }

    /// What to do when the file is sealed with a key that is not among these.
    var adviceForUnknownKey: String {
        let own = KeyFile.path(beside: path)
        guard !isOurFile, access(own, F_OK) == 0 else {
            return "name that key in store.key too, behind the new one; without it the logins in the store are lost"
        }
        return
            "\(own) was made when there was no store.key: name it in store.key too, behind the new one, restart, and run cardea store rotate"
    }

    /// The keys to rotate to: as configured now; where the file is ours, with a new key in front.
    func readForRotation() throws(Problem) -> SealingKeyRing {
        guard isOurFile else { return try read() }
        do { return try SealingKeyRing(try KeyFile.addKey(beside: path)) } catch { throw Problem(text: "\(error)") }
    }

    /// After a rotation the older keys open nothing any more.
    func rotated() throws(Problem) {
        guard isOurFile else { return }
        do { try KeyFile.keepFirst(beside: path) } catch { throw Problem(text: "\(error)") }
    }

    private func ownKeys(_ events: EventLog?) throws(Problem) -> [SealingKey] {
        do {
            let (keys, made) = try KeyFile.makeKeyFile(beside: path)
            if made {
                events?.warn(
                    "store key made beside the store; keep it elsewhere and name it in store.key",
                    [LogField("path", .name(KeyFile.path(beside: path)))])
            }
            return keys
        } catch { throw Problem(text: "\(error)") }
    }

    private func namedKeys() throws(Problem) -> [SealingKey] {
        var keys: [SealingKey] = []
        for reference in references {
            do {
                let bytes = try readSecret(reference, environment: environment, policy: policy)
                keys.append(
                    try bytes.withBytes { (raw: UnsafeRawBufferPointer) throws(SealingFault) in
                        try SealingKey(fileContents: Array(raw))
                    })
            } catch { throw Problem(text: "store.key: \(error)") }
        }
        return keys
    }
}

extension TreeDecoder {
    /// `store.shared`, as a URL or as a block.
    mutating func shared(_ store: BlockReader) -> SharedStore? {
        guard let value = store.entry("shared")?.value else { return nil }
        let mark = store.mark("shared")
        if value.scalar != nil {
            guard let (address, database) = store.parsed("shared", AddressParser.shared) else { return nil }
            return checked(SharedStore(address: address, database: database), mark)
        }
        let reader = store.inside("shared")
        reader.needRequired()
        guard let (address, database) = reader.parsed("url", AddressParser.shared) else { return nil }
        var shared = SharedStore(address: address, database: database)
        shared.username = reader.text("username")
        shared.password = reader.secret("password")
        shared.authorities = reader.list("ca", AddressParser.authority) ?? [.system]
        shared.allowsCleartext = reader.boolean("allow_cleartext")
        shared.format = reader.word("format")
        if shared.username != nil, shared.password == nil {
            error("'shared' of 'store' needs a 'password' for its 'username'", reader.mark("username"))
        }
        reader.refuseEmpty("ca", "'ca' is an empty list, so no server could be trusted")
        if reader.has("ca"), !shared.usesTLS {
            error("'ca' of 'shared' counts for rediss: only", reader.mark("ca"))
        }
        return checked(shared, reader.has("format") ? reader.mark("format") : mark)
    }

    private mutating func checked(_ shared: SharedStore, _ mark: Mark) -> SharedStore {
        if case .server(let origin) = shared.address, origin.isCleartext, !origin.isLoopback, !shared.allowsCleartext {
            error(
                "'shared' of 'store' goes to \(origin) in clear text; use rediss:, or say 'allow_cleartext: true'", mark
            )
        }
        if shared.format != .new {
            warning(
                "'format: \(shared.format.rawValue)' of 'shared' takes versions and ends that whoever writes to the server can forge; say 'format: new' beside 'url' when every gateway of the fleet is upgraded",
                mark)
        }
        return shared
    }
}

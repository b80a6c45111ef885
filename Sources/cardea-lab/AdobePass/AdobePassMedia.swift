/// The media service of a programmer: `/media/CHANNEL/…` opens for a media token of that channel, in a header or in the query, and for
/// each token once. `/mrss/CHANNEL/…` wants the token of an MRSS fragment with the channel as its title.
extension AdobePassServer {
    func admit(_ request: Request) -> Area.Verdict {
        let parts = request.path.split(separator: "/").map(String.init)
        let channel = parts.count > 1 ? parts[1] : ""
        let resource =
            parts.first == "mrss"
            ? "<rss version=\"2.0\"><channel><title>\(channel)</title></channel></rss>" : channel
        let header = request.values("X-Adobe-Authorization")
        let parameter = request.query["token"].map { [$0] } ?? []
        guard (header + parameter).count == 1, let token = (header + parameter).first else {
            return refused("\((header + parameter).count) tokens")
        }
        if request.values("Authorization").contains(where: { $0.hasPrefix("Bearer ") }) {
            return refused("an access token that is none of its business")
        }
        if faults.take("adobe_media_refuses") != nil { return refused("a fault") }
        let why = state.withLock { state -> String? in
            guard let known = state.mediaTokens[token] else { return "INVALID_SIGNATURE" }
            guard !known.isUsed else { return "a token that was used before" }
            state.mediaTokens[token]?.isUsed = true
            guard known.resource == resource else { return "INVALID_RESOURCE_ID" }
            return known.expires > Moment.wall() ? nil : "TOKEN_EXPIRED"
        }
        if let why { return refused(why) }
        return .admitted([])
    }

    private func refused(_ why: String) -> Area.Verdict {
        ledger.count("adobe_media_refused")
        ledger.refuse("media: \(why)")
        return .refused(.json(["error": "\(why)"], 401))
    }
}

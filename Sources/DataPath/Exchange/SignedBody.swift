/// The body of a request whose credential covers it, in one of three ways.
enum SignedBody {
    /// The whole body has to be there before the head is signed.
    case whole(GatheredBody)
    /// The body passes, and the signatures in it are replaced.
    case passing(PassingBody)
    /// The body passes as it came: its form is covered, and nothing in it.
    case untouched

    /// Octets of a body that passes which are kept for a request that is sent again, where its route keeps as many: routes that sign whole
    /// bodies may have to keep large ones, and this one is to pass in constant memory.
    static let mostKept = 1 << 20
}

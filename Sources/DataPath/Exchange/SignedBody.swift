/// The body of a request whose credential covers it, in one of two ways.
enum SignedBody {
    /// All of it has to be there before the head is signed.
    case whole(GatheredBody)
    /// It passes, and the signatures in it are replaced.
    case passing(PassingBody)
}

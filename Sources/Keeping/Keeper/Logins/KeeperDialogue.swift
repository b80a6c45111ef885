internal import Handshakes

/// A login as the handshake that leads it sees it.
struct KeeperDialogue: LoginDialogue {
    let keeper: Keeper
    let login: KeptLogin

    var redirectPort: UInt16? { login.redirectPort }

    func show(_ prompt: LoginPrompt) async {
        await keeper.change(login) { $0.prompt = prompt }
    }

    func progress(_ text: String) async {
        await keeper.change(login) { $0.progress = text }
    }

    func pause(_ nanoseconds: UInt64) async throws(Handshakes.GrantFailure) {
        _ = try await keeper.wait(login, nanoseconds, judge: nil, onTime: .success(Secret([]))).get()
    }

    func redirected(
        within patience: UInt64, judge: @escaping @Sendable (String) -> RedirectVerdict
    ) async throws(Handshakes.GrantFailure) -> Secret {
        try await keeper.wait(login, patience, judge: judge, onTime: .failure(.loginExpired)).get()
    }
}

/// Why a simulated system does not do what it was asked.
struct Refusal: Error {
    let status: Int
    /// The system's own word for it.
    let code: String
    /// Words for the test that looks for the reason; they never hold a secret.
    let why: String
    /// Set where the answer has not the system's usual form.
    var answer: Response?

    init(_ status: Int, _ code: String, _ why: String) {
        self.status = status
        self.code = code
        self.why = why
    }

    init(_ answer: Response, _ why: String) {
        self.init(answer.status, "", why)
        self.answer = answer
    }
}

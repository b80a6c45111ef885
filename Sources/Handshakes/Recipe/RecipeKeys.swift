internal import Configuration

/// The keys of `recipe`.
enum RecipeKeys {
    static let block = Block(
        name: "recipe",
        description: "An in-house system, declared: what is a challenge, which requests to make, what to keep.",
        keys: [
            KeySpec(
                "secrets", .named(.word, .block(secret)),
                "Secrets by name, each with the only places it may go to."),
            KeySpec("challenge", .block(challenge), "Which answers of the upstream are challenges."),
            KeySpec("key", .list(.text(.word)), "Challenge values that belong to the token's key."),
            KeySpec("steps", .list(.block(step)), "Requests that bring the token, at most 8, in their order."),
            KeySpec(
                "sign", .named(.word, .text(.recipe)),
                "Values computed for each request, at most 16, each from secrets, what the steps took, the token and those before it. With request.body_sha256 a request waits for its whole body, of at most on_rejected.max_body bytes."
            ),
            KeySpec("token", .text(.recipe), "The token, out of the steps' values; with sign it may be left out."),
            KeySpec(
                "inject", .either([.block(field), .list(.block(field))]),
                "Where it goes; a route's own wins."),
            KeySpec(
                "attempts", .block(take),
                "Where a refusal says how many attempts are left: with less than two nothing more is sent, also no other secret, until a reset; token.allow_last_attempt spends the last one too."
            ),
            KeySpec(
                "probe", .text(.absolutePath),
                "A path on the upstream that answers with a challenge and changes nothing.", digest: .nothing),
        ])

    static let secret = Block(
        name: "recipe_secret", description: "A secret.",
        keys: [
            KeySpec("value", .secret, "The value.", required: true, digest: .place),
            KeySpec(
                "to", .oneOrMore(.text(.httpURL)), "The only origins that it, or what is computed from it, may go to.",
                required: true),
        ])

    static let challenge = Block(
        name: "recipe_challenge",
        description: "Everything written must hold; with none of scheme, header and json the token is had ahead.",
        keys: [
            KeySpec("status", .oneOrMore(.integer(300...599)), "Statuses of a challenge.", default: "401"),
            KeySpec("scheme", .text(.method), "The scheme in WWW-Authenticate."),
            KeySpec("header", .text(.headerName), "A header that only a challenge has."),
            KeySpec(
                "json", .text(.pointer),
                "A place that only the JSON body of a challenge has. Answers of these statuses with a JSON type, in clear, gzip or deflate, are held to look at them: at most 64 KiB and 5 s."
            ),
            KeySpec("take", .named(.word, .block(challengeTake)), "Values out of the challenge, by name."),
        ])

    static let step = Block(
        name: "recipe_step", description: "One request.",
        keys: [
            KeySpec("name", .text(.word), "Its values are called by it.", required: true),
            KeySpec(
                "layer", .words(RecipeStep.Layer.self),
                "How long its values are kept: for one token, one session, or for good."),
            KeySpec("get", .text(.recipe), "The URL, with GET."),
            KeySpec("post", .text(.recipe), "The URL, with POST."),
            KeySpec("put", .text(.recipe), "The URL, with PUT."),
            KeySpec("headers", .named(.headerName, .text(.recipe)), "Headers of the request."),
            KeySpec("json", .json, "A JSON body; numbers, true, false and null without quotes stay what they are."),
            KeySpec("form", .named(.line, .text(.recipe)), "A form body."),
            KeySpec("text", .text(.recipe), "A body as it stands."),
            KeySpec("accepted", .block(accepted), "Answers that are a success; every 2xx where it is not given."),
            KeySpec("rejected", .block(rejected), "Answers that refuse the credential."),
            KeySpec(
                "stale", .block(stale),
                "Answers that say that a kept value is no longer known: it is made anew, once."),
            KeySpec(
                "take", .named(.word, .block(take)),
                "Values out of the answer, by name; lifetime says how long they are good: seconds, a duration, or the time of their end as in RFC 3339."
            ),
        ])

    static let accepted = Block(
        name: "recipe_accepted", description: "A success.",
        keys: [KeySpec("status", .oneOrMore(.integer(200...399)), "Its statuses.", required: true)])

    static let rejected = Block(
        name: "recipe_rejected",
        description: "A refusal: the secrets of the step are not sent again until they change.",
        keys: [
            KeySpec("status", .oneOrMore(.integer(200...499)), "Its statuses.", default: "401"),
            KeySpec("json", .text(.pointer), "A place in its JSON body that must be there, too."),
            KeySpec("match", .text(.pattern), "What stands there must match this."),
        ])

    static let stale = Block(
        name: "recipe_stale", description: "A kept value is no longer known.",
        keys: [
            KeySpec("status", .oneOrMore(.integer(200...499)), "Its statuses.", required: true),
            KeySpec("json", .text(.pointer), "A place in its JSON body that must be there, too."),
            KeySpec("match", .text(.pattern), "What stands there must match this."),
        ])

    private static let takeKeys = [
        KeySpec("json", .text(.pointer), "A place in the JSON body (RFC 6901)."),
        KeySpec("header", .text(.headerName), "A header."),
        KeySpec("cookie", .text(.method), "A cookie that the answer sets."),
        KeySpec("match", .text(.pattern), "A regular expression whose one group is the value."),
        KeySpec("else", .text(.anyLine), "Instead of a value that is not there."),
    ]

    static let take = Block(
        name: "recipe_take", description: "One value.",
        keys: takeKeys + [
            KeySpec("form", .text(.line), "A member of a form (application/x-www-form-urlencoded)."),
            KeySpec(
                "xml", .text(.line),
                "A place in XML: /Answer/Token, or /Answer/@id for an attribute; names without prefixes. A document type is refused."
            ),
        ])

    static let challengeTake = Block(
        name: "recipe_challenge_take", description: "One value.",
        keys: [KeySpec("param", .text(.method), "A parameter of the challenge.")] + takeKeys)

    static let field = Block(
        name: "recipe_inject", description: "One header.",
        keys: [
            KeySpec("header", .text(.headerName), "Its name.", default: "Authorization"),
            KeySpec(
                "value", .text(.recipe), "Its value, with {token} at its end, or of signed values.", required: true),
        ])
}

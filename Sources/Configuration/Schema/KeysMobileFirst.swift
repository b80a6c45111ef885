extension Keys {
    static let mobileFirst = Block(
        name: "mobilefirst", description: "IBM MobileFirst Foundation 8.",
        keys: [
            KeySpec(
                "base", .text(.httpURL), "The runtime's API, such as https://mfp.example.com/mfp/api.", required: true),
            KeySpec(
                "az_base", .text(.httpURL),
                "Where az/v1/… is, where that is another server; without it the base itself."),
            KeySpec(
                "mode", .words(MobileFirstHandshake.Mode.self),
                "confidential: a client of the server's console with a secret; registered: a device that registers itself and answers challenges."
            ),
            KeySpec("client_id", .text(.line), "Of a confidential client."),
            KeySpec("client_secret", .secret, "Its secret."),
            KeySpec("application", .text(.line), "The application's id on the server; for mode registered."),
            KeySpec(
                "application_version", .text(.line), "The application's version; needed unless platform is web."),
            KeySpec(
                "platform", .text(.word), "The platform that the application is registered for: web, ios, android.",
                default: "web"),
            KeySpec("device", .block(mobileFirstDevice), "What the device tells of itself."),
            KeySpec(
                "answers", .named(.line, .named(.line, .secret)),
                "Answers to challenges: security check → field → secret. Each is sent once until it changes."),
            KeySpec(
                "min_remaining_attempts", .integer(1...100),
                "A challenge that leaves fewer attempts is not answered; token.allow_last_attempt lowers it to 1.",
                default: "2"),
            KeySpec(
                "cooldown", .duration(atLeast: .seconds(60)),
                "After a check has failed, try again after this time; at most 5m. Without it only after a reset or with a new secret."
            ),
            KeySpec(
                "allowed_scopes", .list(.text(.scope)),
                "The only scopes that the API's 403 may add to those of the route."),
            KeySpec(
                "conflict_replay", .words(MobileFirstHandshake.ConflictReplay.self),
                "Which requests are sent again after a 409 with MFP-Conflict: those that may be repeated, or all."),
            KeySpec(
                "redirect_uri", .text(.httpURL),
                "Of the authorization request; without it the one that clients of the platform use."),
            KeySpec("audience", .text(.line), "The aud claim of client assertions.", default: "az/v1/token"),
            KeySpec(
                "assertion_lifetime", .duration(atLeast: .seconds(10)),
                "From now to the exp of a client assertion; at most 1h.", default: "60s"),
            KeySpec(
                "jws_encoding", .words(MobileFirstHandshake.JWSEncoding.self),
                "Of signed data: as in RFC 7515, or with the alphabet and padding of IBM's web SDK."),
        ])

    static let mobileFirstDevice = Block(
        name: "mobilefirst_device", description: "What the device tells of itself.",
        keys: [
            KeySpec(
                "id", .text(.line),
                "Tells this device from others; without it a random one is made and kept. Needed where two identities differ only in their secrets."
            ),
            KeySpec("platform", .text(.line), "Its operating system.", default: "linux"),
            KeySpec("hardware", .text(.line), "Its model.", default: "server"),
            KeySpec("name", .text(.line), "Shown in the server's console."),
        ])
}

import Glibc
import TemporaryFolder
import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct SecretTests {
    private func read(
        _ text: String, environment: [String: String] = [:], policy: SecretFilePolicy = .warn,
        warn: (String) -> Void = { _ in }
    ) -> String {
        do {
            let secret = try readSecret(
                try SecretReference(text: text), environment: { environment[$0] }, policy: policy, warn: warn)
            return secret.withBytes { String(decoding: $0, as: UTF8.self) }
        } catch let fault as SecretFault {
            return "! \(fault)"
        } catch {
            return "? \(error)"
        }
    }

    @Test func oneLineEndIsTrimmed() {
        let scratch = Scratch()
        for (content, secret) in [("a", "a"), ("a\n", "a"), ("a\n\n", "a\n"), ("a\r\n", "a"), (" a ", " a ")] {
            #expect(read("file:" + scratch.write("s", content)) == secret)
        }
        let empty = scratch.write("e", "\n")
        #expect(read("file:\(empty)") == "! file:\(empty): empty")
    }

    @Test func fileRules() {
        let scratch = Scratch()
        let path = scratch.write("s", "x")
        chmod(path, 0o620)
        #expect(read("file:\(path)") == "! file:\(path): others can write it; chmod go-w")
        chmod(path, 0o602)
        #expect(read("file:\(path)") == "! file:\(path): others can write it; chmod go-w")
        chmod(path, 0o640)
        #expect(read("file:\(path)", policy: .strict) == "x")
        let link = scratch.path + "/link"
        symlink(path, link)
        #expect(read("file:\(link)") == "x")
        #expect(read("file:\(scratch.path)") == "! file:\(scratch.path): not a regular file")
        mkfifo(scratch.path + "/pipe", 0o600)
        #expect(read("file:\(scratch.path)/pipe") == "! file:\(scratch.path)/pipe: not a regular file")
        #expect(read("file:\(scratch.path)/none") == "! file:\(scratch.path)/none: No such file or directory")
        #expect(read("file:~/none").hasSuffix("/~/none); '~' is not expanded: write the whole path"))
        let large = scratch.write("large", [UInt8](repeating: 0x61, count: 65537))
        #expect(read("file:\(large)") == "! file:\(large): larger than 64 KiB")
        #expect(read("file:" + scratch.write("full", [UInt8](repeating: 0x61, count: 65536))).utf8.count == 65536)
        // Only root can give a file away.
        if geteuid() == 0 {
            chown(path, 12345, 0)
            #expect(read("file:\(path)") == "! file:\(path): owned by user 12345, neither root nor us")
        }
    }

    @Test func readableByOthersWarnsOnDisk() {
        let scratch = Scratch()
        let path = scratch.write("s", "x", mode: 0o644)
        let file = open(path, O_RDONLY)
        defer { close(file) }
        var warnings: [String] = []
        #expect(read("file:\(path)") { warnings.append($0) } == "x")
        // Where /tmp lies in memory the rule is silence, so the same test holds there.
        let isOnDisk = !warnings.isEmpty
        #expect(warnings == (isOnDisk ? ["file:\(path): others can read it; chmod o-r"] : []))
        #expect(read("file:\(path)", policy: .strict).hasPrefix("!") == isOnDisk)
        let memory = "/dev/shm/cardea-configuration-\(getpid())"
        if let handle = fopen(memory, "w") {
            fputs("m", handle)
            fclose(handle)
            chmod(memory, 0o644)
            defer { unlink(memory) }
            warnings = []
            #expect(read("file:\(memory)", policy: .strict) { warnings.append($0) } == "m")
            #expect(warnings == [])
        }
    }

    @Test func variablesAndCredentials() {
        let scratch = Scratch()
        scratch.write("db", "c\n")
        #expect(read("env:A", environment: ["A": "v"]) == "v")
        #expect(read("env:A") == "! env:A: the variable is not set")
        #expect(read("env:A", environment: ["A": ""]) == "! env:A: empty")
        #expect(read("credential:db", environment: ["CREDENTIALS_DIRECTORY": scratch.path]) == "c")
        #expect(
            read("credential:db")
                == "! credential:db: $CREDENTIALS_DIRECTORY is not set; systemd sets it for a unit with LoadCredential=db:…"
        )
        #expect(read("literal:a:b") == "a:b")
    }

    @Test func commands() {
        #expect(read("exec:/bin/echo a  b") == "a b")
        #expect(read("exec:/bin/echo $HOME;x") == "$HOME;x")
        #expect(read("exec:/bin/false secretargument") == "! exec:/bin/false: ended with status 1")
        #expect(read("exec:/nonexistent") == "! exec:/nonexistent: No such file or directory")
        #expect(read("exec:/bin/cat") == "! exec:/bin/cat: empty")
        #expect(read("exec:/usr/bin/head -c 70000 /dev/zero") == "! exec:/usr/bin/head: wrote more than 64 KiB")
        #expect(read("exec:/usr/bin/yes") == "! exec:/usr/bin/yes: wrote more than 64 KiB")
    }

    @Test func commandsAreBoundedInTime() {
        #expect(throws: BoundedCommand.Fault.self) {
            try BoundedCommand.output(of: "/bin/sleep", ["1000"], bound: 10, time: 1)
        }
        do throws(BoundedCommand.Fault) {
            // It closes its output and lives on.
            _ = try BoundedCommand.output(of: "/bin/sh", ["-c", "exec >&-; sleep 1000"], bound: 10, time: 20_000_000)
            Issue.record("it ended")
        } catch {
            #expect(["was killed", "took too long"].contains(error.reason))
        }
    }

    @Test(arguments: [
        "hunter2", "file:", "env:", "env:A=B", "credential:", "credential:a/b", "credential:..", "exec:", "exec:echo a",
        "http://hunter2",
        "File:/x", "",
    ])
    func notAReference(text: String) {
        do throws(TextFault) {
            _ = try SecretReference(text: text)
            Issue.record("accepted")
        } catch {
            #expect(!error.reason.contains("hunter2"))
        }
    }

    @Test func nothingShowsASecret() throws {
        let reference = try SecretReference(text: "literal:hunter2")
        let bytes = SecretBytes("hunter2")
        var dumped = ""
        dump([reference], to: &dumped)
        dump([bytes], to: &dumped)
        let command = try SecretReference(text: "exec:/bin/x hunter2")
        dump(command, to: &dumped)
        dumped +=
            "\(reference) \(bytes) \(command) \(String(reflecting: [reference, command])) \(String(reflecting: bytes))"
        dumped += "\(Mirror(reflecting: bytes).children.count)"
        let trial = Trial(Trial.around(identity: "static: {value: \"literal:hunter2\"}"))
        dumped += "\(String(describing: trial.result))"
        dump(trial.result, to: &dumped)
        dump(Trial(Trial.around(identity: "static: {value: \"exec:/bin/x hunter2\"}")).result, to: &dumped)
        #expect(!dumped.contains("hunter2"))
        #expect(bytes == SecretBytes("hunter2"))
        #expect(bytes != SecretBytes("hunter3"))
        #expect(bytes != SecretBytes("hunter"))
        #expect(SecretBytes(wiping: []).count == 0)
    }

    @Test func checkReadsEverySecretAndWarns() throws {
        let trial = Trial(
            Trial.around(
                identity: "oauth2: {\(Trial.oauth2)}", top: "admin: {token: env:T}\nstore: {path: /x, key: [env:K]}"))
        let configuration = try #require(trial.result.configuration)
        let found = configuration.checkSecrets { $0 == "K" ? "k" : nil }
        #expect(
            found.map(\.message) == [
                "'client_secret' of identity 'a': env:S: the variable is not set",
                "'token' of admin: env:T: the variable is not set",
            ])
        #expect(found.allSatisfy { $0.severity == .warning })
    }
}

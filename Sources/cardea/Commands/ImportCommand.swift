import ArgumentParser
import Configuration
import Handshakes
import Octets

/// `cardea import`: from the settings of a mobile app to a configuration.
struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Turns a configuration URL or properties of Oracle's IDM Mobile SDK into a configuration.",
        discussion: """
            SOURCE is a URL of the form wp://settings?AuthServerType::=OAMMSAuthentication&…, or a file that holds one, or lines of the form
            name = value with the SDK's names or constants. The YAML goes to standard output and is accepted by cardea check; secrets are
            not copied into it, and what has no counterpart stands in a comment.
            """)

    @Argument(help: "The URL, or the path of a file.", completion: .file())
    var source: String

    @Option(name: .long, help: "The identity's name; by default that of the application.")
    var name: String?

    @Option(name: .long, help: "Where callers come.")
    var listen = "127.0.0.1:8080"

    @Option(name: .long, help: "URL of what is protected, which the properties do not say.")
    var to: String?

    @Flag(name: .long, help: "Print JSON instead of text.")
    var json = false

    func run() throws {
        let made: SDKImport
        do throws(SDKProperties.Fault) {
            let isURL = SDKProperties.isURL(source)
            let properties = isURL ? try SDKProperties(Array(source.utf8)) : try SDKProperties(file: source)
            made = try SDKImport(properties, name: name, listen: listen, upstream: to)
        } catch {
            // The URL may hold a secret.
            let shown = SDKProperties.isURL(source) ? "the URL" : source
            throw ExitCode(ExitStatus.configuration, saying: "\(shown): \(error)")
        }
        guard json else {
            print(made.yaml, terminator: "")
            return
        }
        func list(_ values: [NamedValue], _ first: String, _ second: String) -> String {
            let items = values.map { "{\"\(first)\":\($0.name.jsonQuoted),\"\(second)\":\($0.value.jsonQuoted)}" }
            return "[\(items.joined(separator: ","))]"
        }
        print(
            "{\"handshake\":\(made.handshake.jsonQuoted),\"taken\":\(list(made.taken, "property", "key")),"
                + "\"left\":\(list(made.left, "property", "reason")),\"open\":\(list(made.open, "key", "text")),"
                + "\"yaml\":\(made.yaml.jsonQuoted)}")
    }
}

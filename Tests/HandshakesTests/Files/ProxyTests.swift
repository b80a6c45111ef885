import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct ProxyTests {
    private func proxy(_ text: String) -> OutgoingProxy? {
        Trial(Trial.around(route: "proxy: \(text)")).draft?.routes.first?.proxy
    }

    @Test func anAddressOrABlock() {
        #expect(
            proxy("\"http://p.test:3128\"")
                == OutgoingProxy(host: "p.test", port: 3128, username: nil, password: nil, except: []))
        #expect(
            proxy("{url: \"http://p.test\", username: u, password: env:P, except: [x.test, \"*.y.test\"]}")
                == OutgoingProxy(
                    host: "p.test", port: 80, username: "u", password: .environment(name: "P"),
                    except: [.exact("x.test"), .oneLabel(".y.test")]))
        #expect(proxy("off") == nil)
        #expect(proxy("{url: \"http://p.test\", except: [u.example.com]}") == nil)
    }

    @Test func theOneUnderDefaultsIsTakenBack() {
        let text = Trial.around(route: "proxy: off", top: "defaults: {route: {proxy: \"http://p.test:1\"}}")
        let trial = Trial(text)
        #expect(trial.errors == [] && trial.draft?.routes.first?.proxy == nil)
        let network = Trial(Trial.around(top: "defaults: {network: {proxy: {url: \"http://p.test:1\"}}}"))
        #expect(network.errors == [] && network.draft?.identities.first?.network.proxy?.host == "p.test")
    }

    @Test func whatCannotBeIsSaid() {
        func errors(_ text: String) -> [String] { Trial(Trial.around(route: text)).errors }
        #expect(errors("proxy: \"https://p.test\"").first?.contains("must be an http: URL") == true)
        #expect(errors("proxy: \"http://p.test/x\"").first?.contains("a path or a query") == true)
        #expect(errors("proxy: {url: \"http://p.test\", username: u}").first?.contains("needs both") == true)
        #expect(errors("proxy: \"http://p.test\", addresses: [\"127.0.0.1:1\"]").first?.contains("no meaning") == true)
        let secret = errors("proxy: \"http://u:hunter2@p.test\"")
        #expect(secret.count == 1 && !secret[0].contains("hunter2"))
    }

    /// What is loopback for us is the proxy's own for the proxy.
    @Test func loopbackBehindAProxyIsNoLoopback() {
        let text = """
            identities: {a: {static: {value: env:V}}}
            routes: [{listen: "127.0.0.1:1", to: "http://127.0.0.1:2", use: a, proxy: "http://p.test:3"}]
            """
        #expect(Trial(text).errors.first?.contains("in clear text") == true)
    }
}

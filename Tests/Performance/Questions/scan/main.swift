internal import CScan
internal import Glibc

// Whole heads are parsed by the gateway's own code, once with its scans and once with those in C; see `questions`.
let browser =
    "GET /hr/rest/employees?department=42 HTTP/1.1\r\nHost: hr.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 "
    + "Firefox/128.0\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n"
    + "Accept-Encoding: gzip, deflate, br, zstd\r\nReferer: https://intranet.example.com/start\r\nConnection: keep-alive\r\nUpgrade-Insecure-Requests: 1\r\n"
    + "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\nPriority: u=0, i\r\n\r\n"
let heads = [
    ("short", "GET /small HTTP/1.1\r\nHost: 127.0.0.1:20000\r\n\r\n"), ("browser", browser),
    (
        "long cookie",
        browser.replacing(
            "Priority: u=0, i", with: "Cookie: session=" + String(repeating: "eyJhbGciOiJFUzI1NiJ9.", count: 60))
    ),
]
let counter = open_instructions()
let limits = HeadLimits()
for (name, text) in heads {
    let bytes = Array(text.utf8)
    var head = RequestHead(maxFields: 128)
    var best = cost()
    for _ in 0..<40 {
        let (ns, was) = (thread_ns(), instructions(counter))
        for _ in 0..<5_000 {
            head.reset()
            let length = try head.parse(bytes.span, limits: limits)
            precondition(length == bytes.count, name)
        }
        least(&best, (thread_ns() - ns) / 5_000, (instructions(counter) - was) / 5_000)
    }
    print("\(name), \(bytes.count) bytes: \(Int(best.ns)) ns, \(Int(best.instructions)) instructions")
}

// Reads answers with Node's http: lines of JSON [octets, method, ends, sentinel] come in, a line of JSON with what was understood goes out
// for each. A second request follows on the same connection where the first answer lets it; what is read for it goes out too.
"use strict";
const http = require("node:http");
const { Duplex } = require("node:stream");
const readline = require("node:readline");

class Wire extends Duplex {
  constructor(answers, ends) {
    super();
    this.answers = answers;
    this.ends = ends;
  }
  _read() {}
  _write(chunk, encoding, done) {
    // Each request is written at once.
    const next = this.answers.shift();
    if (next !== undefined) this.push(next);
    if (this.ends && this.answers.length === 0) this.push(null);
    done();
  }
  destroySoon() { this.destroy(); }
  setTimeout() { return this; }
  setNoDelay() { return this; }
  setKeepAlive() { return this; }
  ref() { return this; }
  unref() { return this; }
}

const once = (agent, method) =>
  new Promise((resolve) => {
    const end = (value) => { clearTimeout(timer); resolve(value); };
    // Without a length a POST would be written in two parts.
    const headers = method === "POST" || method === "PUT" ? { "Content-Length": "0" } : {};
    const request = http.request({ agent, method, headers, host: "h.example", path: "/" }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", () => end(null));
      response.on("aborted", () => end(null));
      response.on("end", () => {
        if (!response.complete) return end(null);
        const fields = [];
        for (let at = 0; at < response.rawHeaders.length; at += 2) fields.push([response.rawHeaders[at], response.rawHeaders[at + 1]]);
        end([response.statusCode, response.statusMessage, fields, Buffer.concat(parts).toString("latin1")]);
      });
    });
    const timer = setTimeout(() => { end("waits"); request.destroy(); }, 1500);
    request.on("error", () => end(null));
    request.on("upgrade", () => end(null));
    request.end();
  });

const read = async ([octets, method, ends, sentinel]) => {
  const wire = new Wire(ends ? [Buffer.from(octets, "latin1")] : [Buffer.from(octets, "latin1"), Buffer.from(sentinel, "latin1")], ends);
  let made = 0;
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => { made += 1; return made === 1 ? wire : new Wire([], true); };
  const first = await once(agent, method);
  const second = ends ? null : await once(agent, "GET");
  agent.destroy();
  wire.destroy();
  return [first, second, made];
};

let last = Promise.resolve();
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  last = last.then(() => read(JSON.parse(line))).then((found) => process.stdout.write(JSON.stringify(found) + "\n"));
});

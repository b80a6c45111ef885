// Tells in a field of its answer what Node understood.
"use strict";
const http = require("node:http");

const server = http.createServer({ maxHeaderSize: 1 << 18, keepAliveTimeout: 60000, requestTimeout: 0, headersTimeout: 0 });
const report = (request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const fields = [];
    for (let at = 0; at < request.rawHeaders.length; at += 2) fields.push([request.rawHeaders[at], request.rawHeaders[at + 1]]);
    const told = JSON.stringify([request.method, request.url, fields, Buffer.concat(parts).toString("latin1")]);
    response.sendDate = false;
    response.writeHead(200, { "X-Report": Buffer.from(told, "utf8").toString("base64"), "Content-Length": "0" });
    response.end();
  });
};
server.maxHeadersCount = 0;
server.on("request", report);
server.on("checkContinue", report);
server.on("checkExpectation", report);
server.listen(Number(process.argv[2]), "127.0.0.1");

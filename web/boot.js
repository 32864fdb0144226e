// Unpacks the engine's script and the page's script, and runs them. It is the only script of the page that is not packed.
"use strict";

globalThis.unpack = async (id) => {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

document.getElementById("trouble").remove(); // the browser has read the whole file
const say = (words) => { document.getElementById("status").textContent = words; };
if (typeof DecompressionStream === "undefined") say("{{noUnpacking}}");
else {
  unpack("scripts").then((bytes) => {
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(bytes);
    document.body.append(script);
  }, () => say("{{damagedScripts}}"));
}

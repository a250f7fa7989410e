// Browsers start no workers in pages that are opened as files: there the worker of the search runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const waiting = [];
      this.postMessage = (data) => waiting.push(data);
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      frame.onload = () => {
        const inside = frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = () => {
          this.postMessage = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
          waiting.forEach((data) => this.postMessage(data));
        };
        inside.document.head.append(script);
      };
      document.body.append(frame);
    }
  };
}

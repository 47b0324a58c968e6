/* Search on pages that are opened as files: browsers start no workers there, so a hidden frame runs the worker's script. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.waiting = [];
      this.inside.postMessage = (data) => this.heard(data);
      this.inside.importScripts = (...urls) => Promise.all(urls.map((one) => this.load(one)));
      this.load(url).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: failed });
        this.inside.document.body.append(script);
      });
    }

    postMessage(data) {
      if (!this.ready) return this.waiting.push(data);
      this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
    }

    heard(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}

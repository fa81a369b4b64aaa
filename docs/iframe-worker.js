// Search runs in a worker, which browsers forbid to a page that is opened from disk. There, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      const waiting = [];
      this.postMessage = (data) => waiting.push(data);
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data: structuredClone(data) }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onerror = (event) => this.onerror?.(event);
      script.onload = () => {
        this.postMessage = (data) => setTimeout(() => inside.onmessage({ data: structuredClone(data) }));
        waiting.forEach(this.postMessage);
      };
      inside.document.body.append(script);
    }

    terminate() {
      this.frame.remove();
    }
  };
}

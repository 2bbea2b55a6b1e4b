/*
 * xterm writes its colours into <style> elements and style attributes, which the page's policy does not allow. The same by
 * the object model is allowed, since no text of a sandbox can do it.
 */
let done = false;

export function allowStyles() {
  if (done) return;
  done = true;
  const create = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    return name === "style" ? adopt(create("span")) : create(name, options);
  }) as typeof document.createElement;

  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name: string, value: string) {
    if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
    else set.call(this, name, value);
  };
}

/* Something that looks like a <style> element to whoever writes its text. */
function adopt(el: HTMLElement): HTMLElement {
  el.hidden = true;
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(el, "textContent", {
    get: () => "",
    set: (text: string) => sheet.replaceSync(text),
  });
  const remove = el.remove.bind(el);
  el.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== sheet);
    remove();
  };
  return el;
}

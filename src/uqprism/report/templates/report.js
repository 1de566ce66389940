"use strict";
(() => {
  const root = document.documentElement;
  const toggle = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const name = () => { toggle.textContent = isDark() ? "Light" : "Dark"; };
  toggle.hidden = false;
  toggle.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  prefersDark.addEventListener("change", name);
  name();

  const names = document.getElementById("names");
  names.hidden = false;
  names.addEventListener("click", () => {
    const shown = root.toggleAttribute("data-names");
    names.setAttribute("aria-pressed", String(shown));
    fits();
  });

  for (const button of document.querySelectorAll("button.all")) {
    const more = button.parentElement.querySelector("tbody.more");
    more.hidden = true;
    button.hidden = false;
    button.addEventListener("click", () => { more.hidden = false; button.remove(); });
  }
  const fits = () => {
    for (const table of document.querySelectorAll(".table")) {
      if (table.offsetParent) { table.parentElement.classList.toggle("wider", table.scrollWidth > table.clientWidth + 1); }
    }
  };
  addEventListener("resize", fits);
  addEventListener("toggle", fits, true); // a table that was folded away had no width
  const long = document.querySelectorAll("details.long");
  if (matchMedia("(max-width: 560px)").matches) { for (const each of long) { each.open = false; } }
  fits();
  addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("main details")) { each.open = true; } });
  // A link into something folded away opens it.
  const reveal = () => {
    const aim = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (const each of aim ? aim.querySelectorAll(":scope > details") : []) { each.open = true; }
  };
  addEventListener("hashchange", reveal);
  reveal();

  for (const source of document.querySelectorAll("script[data-dots]")) {
    const figure = source.closest("figure");
    const svg = figure.querySelector("svg");
    const ring = figure.querySelector(".ring");
    const tip = figure.querySelector(".tip");
    const dots = JSON.parse(source.textContent);

    const place = (event) => {
      const point = svg.createSVGPoint();
      point.x = event.clientX;
      point.y = event.clientY;
      return point.matrixTransform(svg.getScreenCTM().inverse());
    };

    const nearest = (at, reach) => {
      let best = -1;
      let least = reach * reach;
      for (let i = 0; i < dots.x.length; i += 1) {
        const far = (dots.x[i] - at.x) ** 2 + (dots.y[i] - at.y) ** 2;
        if (far < least) { least = far; best = i; }
      }
      return best;
    };

    const hide = () => { tip.hidden = true; ring.setAttribute("cx", -9); ring.setAttribute("cy", -9); };

    const show = (i) => {
      ring.setAttribute("cx", dots.x[i]);
      ring.setAttribute("cy", dots.y[i]);
      tip.replaceChildren();
      dots.names.forEach((label, column) => {
        if (dots.values[column][i] === "") { return; }
        const line = document.createElement("div");
        const strong = document.createElement("b");
        strong.textContent = dots.values[column][i];
        line.append(`${label}: `, strong);
        tip.append(line);
      });
      tip.hidden = false;
      const frame = figure.getBoundingClientRect();
      const dot = ring.getBoundingClientRect();
      const left = dot.left - frame.left;
      const beyond = left + 14 + tip.offsetWidth > frame.width;
      tip.style.left = `${Math.max(4, beyond ? left - tip.offsetWidth - 4 : left + 18)}px`;
      const top = dot.top - frame.top;
      const upper = top < frame.height / 2; // downwards from there, so that the legend stays in sight
      tip.style.top = `${Math.max(4, upper ? top : top - tip.offsetHeight)}px`;
    };

    const look = (event) => {
      const i = nearest(place(event), event.pointerType === "touch" ? 24 : 14);
      if (i < 0) { hide(); } else { show(i); }
    };
    svg.addEventListener("pointermove", look);
    svg.addEventListener("pointerdown", look);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") { hide(); } });
  }
})();

// Formulas are rendered in the reader's browser, by the copy of KaTeX that is part of this site.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const source = formula.textContent.trim();
    katex.render(source.slice(2, -2), formula, { displayMode: source.startsWith("\\["), throwOnError: false });
  }
});

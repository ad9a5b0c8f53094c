"use strict";
// Links and forms need no script. It adds keys and stops an answer.
addEventListener("keydown", (event) => {
  if (event.key === "Escape") stopAnswer();
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  event.preventDefault();
  [...document.querySelectorAll("input[type=search]")].at(-1)?.focus();
});

function stopAnswer() {
  window.stop();
  document.body.classList.add("stopped");
}

document.addEventListener("click", (event) => {
  if (event.target.matches(".stop")) stopAnswer();
});

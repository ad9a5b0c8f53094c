"use strict";
// Links and forms need no script. It adds keys and stops an answer.
addEventListener("keydown", (event) => {
  if (event.key === "Escape") stopAnswer();
  if (event.key === "ArrowUp" || event.key === "ArrowDown") recallQuestion(event);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  if (event.key === "/") event.preventDefault();
  if (event.key === "/" || isLetter(event.key)) lastField()?.focus();
});

// A letter that is typed before the field has the focus becomes the first letter of the question.
function isLetter(key) {
  return /^[\p{L}\p{N}]$/u.test(key) && document.querySelector("main.ask, main.search") !== null;
}

// The next question can be typed immediately. On a phone, the focus would open the keyboard.
// The browser moves the focus to the fragment of the address when the page has been loaded.
addEventListener("load", () => {
  const waits = document.querySelector("main.ask, main.search");
  if (!waits || !matchMedia("(pointer: fine)").matches) return;
  setTimeout(() => lastField()?.focus({ preventScroll: true }));
});

function lastField() {
  return [...document.querySelectorAll("input[type=search]")].at(-1);
}

// The arrow keys fill the field with earlier questions, the latest first.
function recallQuestion(event) {
  const field = event.target;
  if (field.name !== "question") return;
  const questions = [...document.querySelectorAll(".question")].map((one) => one.textContent);
  const now = field.dataset.recalled === undefined ? questions.length : +field.dataset.recalled;
  const next = now + (event.key === "ArrowUp" ? -1 : 1);
  if (next < 0 || next > questions.length) return;
  event.preventDefault();
  field.dataset.recalled = next;
  field.value = questions[next] ?? "";
}

function stopAnswer() {
  window.stop();
  document.body.classList.add("stopped");
}

document.addEventListener("click", (event) => {
  if (event.target.matches(".stop")) stopAnswer();
});

"use strict";
// The questions of an evaluation. All texts are written by textContent: none of them is markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const words = JSON.parse(byId("words").textContent);
  const root = document.documentElement;
  const LETTERS = ["A", "B"];
  const SHORT = { "": 420, ko: 300, ja: 220, zh: 220 }; // characters before "show all"
  const PAGE = 50; // questions at once
  const state = {
    language: "en", metric: 0, setups: [0, 1], show: "differ", sort: "difference",
    query: "", open: null, shown: PAGE,
  };
  let data = null;
  let chosen = []; // places of the questions that are listed

  // Words and elements

  const say = (key, values = {}) =>
    words[state.language][key].replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
  // What an evaluation says, by the patterns of the language
  function phrase(text) {
    for (const [pattern, wording] of words.phrases[state.language] ?? []) {
      const match = new RegExp(`^(?:${pattern})$`, "su").exec(text);
      if (match) return wording.replace(/\$(\d)/g, (all, place) => phrase(match[place] ?? ""));
    }
    return text;
  }
  const count = (number) => new Intl.NumberFormat(state.language).format(number);

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) {
        element.setAttribute(name, value);
      }
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  function languageOf(text) {
    if (/[\u3040-\u30ff]/.test(text)) return "ja";
    if (/[\uac00-\ud7af]/.test(text)) return "ko";
    return /[\u3400-\u9fff]/.test(text) ? "zh" : "";
  }

  // What somebody else wrote: in its own language and direction
  const written = (tag, text, attributes = {}) =>
    make(tag, { lang: languageOf(text), dir: "auto", ...attributes }, text);

  function setLanguage(language) {
    state.language = language;
    root.lang = language === "zh" ? "zh-Hans" : "en";
    for (const element of document.querySelectorAll("[data-word]")) {
      const values = JSON.parse(element.dataset.values ?? "{}");
      element.textContent = say(element.dataset.word, values);
    }
    for (const element of document.querySelectorAll("[data-phrase]")) {
      element.textContent = phrase(element.dataset.phrase);
    }
    document.title = document.querySelector("h1").textContent;
    byId("language").textContent = language === "zh" ? "English" : "中文";
    byId("language").lang = language === "zh" ? "en" : "zh-Hans";
    setTheme();
    if (data) drawQuestions();
  }

  function setTheme(theme = root.dataset.theme) {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    if (theme) root.dataset.theme = theme;
    byId("theme").textContent = say((theme ?? system) === "dark" ? "to_light" : "to_dark");
    byId("theme").value = (theme ?? system) === "dark" ? "light" : "dark";
  }

  // What is in the data

  // A row has a text, or the place of one that is there already, and how much of it was cut;
  // that of a node also its document, its place in that, and lines of explanations.
  const textRow = (place) => {
    const text = data.rows[place];
    return typeof text[0] === "string" ? text : data.rows[text[0]];
  };
  const full = (place) => textRow(place)[0];
  const nodeOf = (item) => {
    const [, , document, start, end] = data.rows[item[0]];
    return { document, start, end };
  };
  const goldOf = (item) => item[2] || [];
  const records = (question) => state.setups.map((setup) => question[4][setup]);
  const judgement = (record) => record[1][state.metric];
  const higher = () => data.metrics[state.metric][2];

  // The value of a judgement: null where there is none, infinite where nothing divides something
  function valueOf([numerator, , denominator = 1]) {
    if (numerator === null) return null;
    if (denominator) return numerator / denominator;
    return numerator > 0 ? Infinity : null;
  }

  function valueText(judged) {
    const value = valueOf(judged);
    if (judged[0] === null) return say("not_judged_cell");
    if (value === null || value === Infinity) return `${judged[0]} / ${judged[2]}`;
    return String(Number(value.toFixed(Math.abs(value) < 10 ? 4 : 1)));
  }

  // By how much the second is more than the first; 0 where that can't be told
  function gain(question) {
    const [first, second] = records(question).map((record) => valueOf(judgement(record)));
    if (first === null || second === undefined || second === null) return 0;
    return first === second ? 0 : second - first;
  }

  const kinds = {
    all: () => true,
    differ: (question) => {
      const [a, b] = records(question).map(judgement);
      return b !== undefined && a[0] !== null && b[0] !== null && (a[0] !== b[0] || a[2] !== b[2]);
    },
    first: (question) => (higher() ? gain(question) < 0 : gain(question) > 0),
    second: (question) => (higher() ? gain(question) > 0 : gain(question) < 0),
    equal: (question) => !kinds.differ(question) && !kinds.unjudged(question),
    unjudged: (question) => records(question).some((record) => judgement(record)[0] === null),
    failed: (question) => records(question).some((record) => record[4] !== null),
  };

  const differOrAll = () => (data.questions.some(kinds.differ) ? "differ" : "all");

  const worst = (side) => (question) => {
    const value = valueOf(judgement(records(question)[side]));
    return value === null ? Infinity : higher() ? value : -value;
  };
  const orders = {
    difference: (question) => -Math.abs(gain(question)),
    place: () => 0,
    first: worst(0),
    second: worst(1),
    text: null,
  };

  function haystack(question) {
    const golds = question[3].flatMap(([text, document]) => [text, document]);
    const places = [question[1], ...question[2], ...golds].filter((place) => place !== null);
    return `${question[0]}\n${places.map(full).join("\n")}`.toLowerCase();
  }

  function choose() {
    const terms = state.query.toLowerCase().split(/\s+/).filter(Boolean);
    const places = data.questions
      .map((question, place) => place)
      .filter((place) => kinds[state.show](data.questions[place]))
      .filter((place) => terms.every((term) => data.haystacks[place].includes(term)));
    const order = orders[state.sort];
    if (order) {
      const keys = new Map(places.map((place) => [place, order(data.questions[place])]));
      places.sort((a, b) => (keys.get(a) < keys.get(b) ? -1 : keys.get(a) > keys.get(b) ? 1 : a - b));
    } else {
      const compare = new Intl.Collator(state.language).compare;
      places.sort((a, b) => compare(full(data.questions[a][1]), full(data.questions[b][1])) || a - b);
    }
    chosen = places;
  }

  // Controls

  function select(key, options, value, change, mark = null) {
    const list = make("select", { onchange: (event) => change(event.target.value) });
    for (const [name, text] of options) {
      list.append(make("option", { value: name, selected: String(name) === String(value) }, text));
    }
    return make("label", {}, make("span", {}, say(key), mark && " ", mark), list);
  }

  const name = (side) => data.setups[state.setups[side]];

  function setSetup(side, setup) {
    const other = 1 - side;
    if (state.setups[other] === setup) state.setups[other] = state.setups[side];
    state.setups[side] = setup;
    drawQuestions();
  }

  function drawControls() {
    const names = data.setups.map((setup, place) => [place, setup]);
    const metrics = data.metrics.map(([metric], place) => [place, metric]);
    const pair = state.setups.length > 1;
    const chooser = make("div", { class: "controls" },
      select("metric", metrics, state.metric, (value) => {
        state.metric = Number(value);
        drawQuestions();
      }),
      ...state.setups.map((setup, side) =>
        select(side ? "with" : pair ? "compare" : "setup", names, setup,
          (value) => setSetup(side, Number(value)), letter(side))),
    );
    const chips = make("div", { class: "chips", role: "group", "aria-label": say("questions") });
    const shown = pair ? Object.keys(kinds) : ["all", "unjudged", "failed"];
    for (const kind of shown) {
      const number = data.questions.filter(kinds[kind]).length;
      if (!number && (kind === "failed" || kind === "unjudged") && state.show !== kind) continue;
      const words = say(`show_${kind}`, { letter: LETTERS[kind === "first" ? 0 : 1] });
      chips.append(make("button", {
        type: "button", "aria-pressed": String(state.show === kind), "data-show": kind,
        onclick: () => {
          state.show = kind;
          drawQuestions();
          document.querySelector(`[data-show=${kind}]`).focus();
        },
      }, `${words} `, make("b", {}, count(number))));
    }
    const sorts = (pair ? Object.keys(orders) : ["first", "place", "text"]).map((key) =>
      [key, say(`sort_${key}`, { letter: LETTERS[key === "first" ? 0 : 1] })]);
    const finder = make("div", { class: "controls" },
      make("label", { class: "search" }, `${say("search")} `, make("input", {
        type: "search", id: "search", value: state.query, placeholder: say("search_help"),
        oninput: (event) => {
          state.query = event.target.value;
          drawList();
        },
      })),
      select("sort", sorts, state.sort, (value) => {
        state.sort = value;
        drawList();
      }),
    );
    return [chooser, sentence(), chips, finder];
  }

  function sentence() {
    if (state.setups.length < 2) return null;
    const [first, second] = state.setups;
    const found = data.differences.find(([metric, a, b]) => metric === state.metric
      && ((a === first && b === second) || (a === second && b === first)));
    const metric = data.metrics[state.metric][0];
    const text = found
      ? differenceText(metric, found)
      : say("sentence_absent", {
        first: data.setups[0], metric: JSON.stringify(metric),
        one: JSON.stringify(name(0)), other: JSON.stringify(name(1)),
      });
    return make("p", { id: "sentence" }, text);
  }

  function differenceText(metric, [, a, b, numbers, questions, better]) {
    const values = { metric, first: data.setups[a], second: data.setups[b], questions };
    if (numbers === null) return say("sentence_none", values);
    [values.value, values.low, values.high] = numbers;
    if (better === null) {
      return say(questions === 1 ? "sentence_same_one" : "sentence_same", values);
    }
    values.better = data.setups[better];
    values.other = data.setups[better === a ? b : a];
    return say("sentence_better", values);
  }

  const letter = (side) =>
    make("span", { class: `letter side-${side}`, "aria-hidden": "true" }, LETTERS[side]);

  // The list

  function drawQuestions() {
    state.shown = PAGE;
    const list = make("ol", { id: "list" });
    const parts = [
      ...drawControls(),
      make("p", { id: "count", "aria-live": "polite" }),
      make("p", { class: "quiet keys" }, say("keys")),
      list,
      make("p", { id: "more" }),
    ];
    byId("browser").replaceChildren(...parts.filter(Boolean));
    drawList();
  }

  function drawList() {
    choose();
    const total = count(data.questions.length);
    const text = chosen.length ? say("count", { count: count(chosen.length), total }) : say("none");
    byId("count").textContent = text;
    byId("list").replaceChildren();
    addRows(0, Math.max(state.shown, chosen.indexOf(state.open) + 1));
    remember();
  }

  function addRows(from, to) {
    state.shown = to;
    byId("list").append(...chosen.slice(from, to).map(row));
    const left = Math.min(PAGE, chosen.length - to);
    byId("more").replaceChildren();
    if (left > 0) {
      byId("more").append(make("button", {
        type: "button", onclick: () => addRows(to, to + left),
      }, say("more", { count: count(left) })));
    }
  }

  function row(place) {
    const question = data.questions[place];
    const open = state.open === place;
    const values = records(question).map((record, side) => {
      const better = kinds[side ? "second" : "first"](question) && state.setups.length > 1;
      return make("span", { class: `value${better ? " better" : ""}` }, letter(side),
        make("span", { class: "unseen" }, `${name(side)}: `), valueText(judgement(record)),
        better ? make("span", { class: "unseen" }, `, ${say("better")}`) : null);
    });
    const button = make("button", {
      type: "button", class: "row", "data-place": place,
      "aria-expanded": String(open), onclick: () => toggle(place),
    }, written("span", full(question[1]) || "–", { class: "question" }),
      make("span", { class: "values" }, ...values));
    return make("li", { id: `question-${place}` }, button, open ? detail(place) : null);
  }

  function toggle(place) {
    const before = state.open;
    state.open = before === place ? null : place;
    for (const one of [before, place]) {
      if (one !== null) byId(`question-${one}`)?.replaceWith(row(one));
    }
    const button = byId(`question-${place}`).firstChild;
    button.focus({ preventScroll: true });
    if (state.open !== null) button.scrollIntoView({ block: "start" });
    remember();
  }

  function step(place, by) {
    const at = chosen.indexOf(place) + by;
    if (at < 0 || at >= chosen.length) return;
    if (at >= state.shown) addRows(state.shown, at + PAGE);
    toggle(chosen[at]);
  }

  // One question

  function detail(place) {
    const question = data.questions[place];
    const both = records(question);
    const at = chosen.indexOf(place);
    const go = (key, by, off) => make("button", {
      type: "button", disabled: off, onclick: () => step(place, by),
    }, say(key));
    const answers = question[2].map(full);
    return make("div", { class: "detail", role: "region", "aria-label": full(question[1]) },
      make("p", { class: "quiet" }, question[0]),
      answers.length
        ? make("p", {}, say("answers"),
          ...answers.flatMap((answer, n) => [n ? "; " : null, written("b", answer)]))
        : null,
      golds(question, both),
      metricsTable(question, both),
      make("div", { class: "rankings" },
        ...both.map((record, side) => ranking(question, both, record, side))),
      make("div", { class: "controls" }, go("previous", -1, at <= 0),
        go("next", 1, at < 0 || at >= chosen.length - 1),
        make("button", { type: "button", onclick: () => toggle(place) }, say("close"))));
  }

  const goldName = (question, n) =>
    question[3].length > 1 ? say("gold_number", { number: n + 1 }) : say("gold");

  function golds(question, both) {
    if (!question[3].length) return make("p", { class: "quiet" }, say("gold_none"));
    return make("ul", { class: "golds" }, ...question[3].map(
      ([text, document, start, end, grade, missing], n) => {
        const ranks = both.map((record, side) => {
          const rank = record[0].findIndex((item) => goldOf(item).includes(n)) + 1;
          return make("span", { class: "chip" }, letter(side),
            rank ? say("at_rank", { rank }) : say("not_retrieved"));
        });
        return make("li", {},
          make("span", { class: "chip gold" }, `★ ${goldName(question, n)}`), ...ranks,
          missing === null ? null : make("span", { class: "chip wrong" }, say("gold_missing")),
          grade === null ? null : make("span", { class: "chip" }, say("grade", { grade })),
          where(document, start, end),
          text === null ? null : passage(text, []),
          missing === null || !full(missing) ? null
            : make("div", { class: "quiet" }, say("gold_nearest"), passage(missing, [])));
      }));
  }

  function metricsTable(question, both) {
    const rows = data.metrics.map(([metric], n) => make("tr", { "aria-current": n === state.metric ? "true" : null },
      make("th", { scope: "row" }, metric),
      ...both.map((record) => make("td", {}, make("b", {}, valueText(record[1][n])), " ",
        written("span", phrase(full(record[1][n][1])), { class: "quiet" })))));
    const heads = both.map((record, side) => make("th", { scope: "col" }, letter(side), name(side)));
    return make("details", {}, make("summary", {}, say("judged_as")),
      make("div", { class: "scroll" }, make("table", {},
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, say("metric")), ...heads)),
        make("tbody", {}, ...rows))));
  }

  function ranking(question, both, record, side) {
    const [items, , milliseconds, calls, error, answer, unknown] = record;
    const list = make("ol", { class: "ranking" });
    const seen = new Set();
    const [metric, cutoff] = data.metrics[state.metric];
    items.forEach((item, at) => {
      if (cutoff === at) list.append(make("li", { class: "beyond" }, say("beyond", { metric })));
      list.append(result(question, both, item, at + 1, side, seen));
      goldOf(item).forEach((n) => seen.add(n));
    });
    return make("section", { class: `side-${side}` },
      make("h3", {}, letter(side), written("span", name(side))),
      make("p", { class: "quiet" },
        say("costs", { milliseconds: count(milliseconds), calls: count(calls) })),
      error === null ? null
        : make("p", { class: "wrong" }, say("error", { error: full(error) })),
      answer === null ? null
        : make("div", { class: "answer" }, make("b", {}, say("answer")), passage(answer, [])),
      unknown === null ? null
        : make("p", { class: "wrong" }, say("gold_unknown", { reason: phrase(full(unknown)) })),
      items.length || error !== null ? null : make("p", { class: "quiet" }, say("no_results")),
      list);
  }

  function result(question, both, item, rank, side, seen) {
    const [node, score] = item;
    const { document, start, end } = nodeOf(item);
    const gold = goldOf(item);
    const chips = gold.map((n) => {
      const label = goldName(question, n);
      const again = seen.has(n);
      return make("span", { class: again ? "chip" : "chip gold" },
        again ? say("gold_again", { name: label }) : `★ ${label}`);
    });
    if (both.length > 1) {
      const other = both[1 - side][0].findIndex((one) => one[0] === node) + 1;
      const letters = { letter: LETTERS[1 - side], rank: other };
      chips.push(make("span", { class: other ? "chip" : "chip only" },
        say(other ? "also_at" : "only_here", letters)));
    }
    return make("li", { class: gold.length ? "is-gold" : null },
      make("div", { class: "line" }, make("span", { class: "rank" }, String(rank)), ...chips,
        make("span", { class: "quiet" }, say("score", { score })), where(document, start, end)),
      passage(node, marks(question, item)),
      explanation(question, item));
  }

  function where(document, start, end) {
    if (document === null) return null;
    const parts = [written("span", full(document))];
    if (start !== null && end !== null) {
      parts.push(`, ${say("characters", { start: count(start), end: count(end) })}`);
    }
    return make("span", { class: "quiet where" }, ...parts);
  }

  // Where a text has an answer or a gold span of its document, as places in it
  function marks(question, item) {
    const { document, start, end } = nodeOf(item);
    const shown = full(item[0]);
    const spans = [];
    const lower = shown.toLowerCase();
    if (lower.length === shown.length) {
      for (const answer of question[2].map((place) => full(place).trim().toLowerCase())) {
        let at = answer ? lower.indexOf(answer) : -1;
        for (; at >= 0 && spans.length < 20; at = lower.indexOf(answer, at + answer.length)) {
          spans.push([at, at + answer.length]);
        }
      }
    }
    for (const [, golden, from, to] of question[3]) {
      const inside = golden === document && from !== null && start !== null;
      if (inside && from < end && to > start) {
        const letters = Array.from(shown); // places count characters, not halves of them
        const unit = (place) => letters.slice(0, Math.max(0, place - start)).join("").length;
        spans.push([unit(from), unit(to)]);
      }
    }
    spans.sort((a, b) => a[0] - b[0]);
    return spans.filter(([from, to], n) => to > from && spans.slice(0, n).every((s) => s[1] <= from));
  }

  function passage(place, spans) {
    const [text, omitted] = textRow(place);
    const short = SHORT[languageOf(text)];
    const long = text.length > short + 60;
    const block = make("div", { class: "passage" });
    const draw = (whole) => {
      const middle = !whole && long && spans.length && spans[0][0] > short - 60;
      const from = middle ? Math.max(0, spans[0][0] - 60) : 0;
      const to = whole || !long ? text.length : Math.min(text.length, from + short);
      const body = written("span", "", { lang: languageOf(text) });
      if (from) body.append("… ");
      let at = from;
      for (const [start, end] of spans) {
        if (start < at || start >= to) continue;
        body.append(text.slice(at, start), make("mark", {}, text.slice(start, Math.min(end, to))));
        at = Math.min(end, to);
      }
      body.append(text.slice(at, to), to < text.length ? " …" : "");
      block.replaceChildren(body);
      if (omitted && to === text.length) {
        const words = say("omitted", { count: count(omitted) });
        block.append(" ", make("span", { class: "omitted" }, words));
      }
      if (long) {
        block.append(" ", make("button", {
          type: "button", class: "link", onclick: () => {
            draw(!whole);
            block.querySelector("button").focus();
          },
        }, say(whole ? "collapse" : "expand")));
      }
    };
    draw(false);
    return block;
  }

  function explanation(question, [node, score, , ...lines]) {
    if (!lines.length) return null;
    const line = full(question[1]).split(/\s+/).filter(Boolean).join(" ");
    const letters = Array.from(line);
    const quoted = `"${letters.length <= 60 ? line : `${letters.slice(0, 57).join("")}...`}"`;
    const output = [];
    for (let at = 0; at < lines.length;) {
      const place = lines[at++];
      if (place < 0) {
        output.push(say("evidence_more", { count: count(-place) }));
        continue;
      }
      const template = data.rows[node][5 + place];
      output.push(phrase(template.replace(/[\u0001-\u0003]/g, (mark) => (
        mark === "\u0001" ? quoted : mark === "\u0002" ? lines[at++] : score.toFixed(4)))));
    }
    return make("details", { class: "evidence", open: true },
      make("summary", {}, say("evidence")), written("pre", output.join("\n")));
  }

  // The address says what is shown, so that a copy of it shows the same

  function remember() {
    const values = new URLSearchParams({
      metric: data.metrics[state.metric][0], first: name(0), show: state.show, order: state.sort,
    });
    if (state.setups.length > 1) values.set("second", name(1));
    if (state.query) values.set("search", state.query);
    if (state.open !== null) values.set("question", data.questions[state.open][0]);
    try {
      history.replaceState(null, "", `#${values}`);
    } catch {
      // A browser that limits how often: the next change writes the address
    }
  }

  function recall() {
    const values = new URLSearchParams(location.hash.slice(1));
    const place = (list, value, otherwise) => {
      const at = list.indexOf(value);
      return at < 0 ? otherwise : at;
    };
    const pair = data.setups.length > 1;
    state.metric = place(data.metrics.map(([metric]) => metric), values.get("metric"), 0);
    const first = place(data.setups, values.get("first"), 0);
    const second = place(data.setups, values.get("second"), first ? 0 : 1);
    state.setups = pair ? [first, second === first ? Number(!first) : second] : [0];
    const show = values.get("show");
    state.show = Object.hasOwn(kinds, show ?? "") ? show : differOrAll();
    const sort = values.get("order");
    state.sort = Object.hasOwn(orders, sort ?? "") ? sort : pair ? "difference" : "first";
    state.query = values.get("search") ?? "";
    const open = data.questions.findIndex(([id]) => id === values.get("question"));
    state.open = open < 0 ? null : open;
  }

  // Beginning

  // Base 85 (RFC 1924), with a comma in place of what begins a tag: four bytes in five letters
  function bytesOf(text, size) {
    const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
      + "!#$%&()*+-;,=>?@^_`{|}~";
    const digits = new Map(Array.from(letters, (letter, digit) => [letter.charCodeAt(0), digit]));
    const bytes = new DataView(new ArrayBuffer((text.length / 5) * 4));
    for (let at = 0; at < text.length; at += 5) {
      let value = 0;
      for (let n = at; n < at + 5; n++) value = value * 85 + digits.get(text.charCodeAt(n));
      bytes.setUint32((at / 5) * 4, value);
    }
    return bytes.buffer.slice(0, size);
  }

  async function unpack() {
    const { dataset, textContent } = byId("data");
    const bytes = bytesOf(textContent, Number(dataset.size));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const json = await new Response(stream).arrayBuffer();
    return JSON.parse(new TextDecoder(dataset.encoding).decode(json));
  }

  function plot(metric) {
    for (const plots of document.querySelectorAll(".plots[data-metric]")) {
      plots.hidden = plots.dataset.metric !== String(metric);
    }
  }

  function listen() {
    byId("language").addEventListener("click", () => {
      setLanguage(state.language === "zh" ? "en" : "zh");
    });
    byId("theme").addEventListener("click", (event) => setTheme(event.target.value));
    for (const control of document.querySelectorAll("header [hidden], .choice")) {
      control.hidden = false;
    }
    byId("plotted").addEventListener("change", (event) => plot(event.target.value));
    byId("figures").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button || !data) return;
      const setup = Number(button.dataset.setup);
      state.metric = Number(button.dataset.metric);
      if (data.setups.length > 1) state.setups = setup ? [0, setup] : [0, state.setups[1] || 1];
      state.show = differOrAll();
      state.open = null;
      drawQuestions();
      byId("h-questions").scrollIntoView();
      byId("h-questions").focus({ preventScroll: true });
    });
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !data) return;
      const focus = document.activeElement;
      if (event.key === "/" && !/INPUT|SELECT/.test(focus.tagName)) {
        event.preventDefault();
        byId("search").focus();
      }
      if (event.key === "Escape" && state.open !== null) toggle(state.open);
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by && focus.classList.contains("row")) {
        event.preventDefault();
        const next = chosen[chosen.indexOf(Number(focus.dataset.place)) + by];
        byId(`question-${next}`)?.firstChild.focus();
      }
    });
    addEventListener("hashchange", () => {
      if (!data) return;
      recall();
      drawQuestions();
    });
  }

  async function begin() {
    const browser = (navigator.languages ?? [navigator.language])[0] ?? "";
    setLanguage(root.dataset.language ?? (browser.toLowerCase().startsWith("zh") ? "zh" : "en"));
    for (const element of document.querySelectorAll("bdi")) {
      element.lang = languageOf(element.textContent);
    }
    plot(0);
    listen();
    if (typeof DecompressionStream === "undefined") {
      byId("state").dataset.word = "unpack";
      setLanguage(state.language);
      return;
    }
    data = await unpack();
    data.haystacks = data.questions.map(haystack);
    recall();
    drawQuestions();
    byId("state").remove();
    byId("browser").hidden = false;
    if (state.open !== null) byId(`question-${state.open}`)?.scrollIntoView();
  }

  begin();
})();

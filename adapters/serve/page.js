"use strict";
// Ask a corpus and look inside it. All texts are written by textContent: none of them is markup.
// Markdown comes as elements, [tag, attributes, ...children], which the server made of it.
(async () => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const VIEWS = ["ask", "search", "corpus"];
  const state = { language: "en", corpus: null, view: "ask", turns: [], running: null };
  const words = await (await fetch("words.json")).json();

  // Words and elements

  const say = (key, values = {}) =>
    words[state.language][key].replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
  // What the server says in English, in the page's language if it has this phrase
  function translated(text) {
    for (const [phrase, translation] of Object.entries(words[state.language].phrases)) {
      const escaped = phrase.replace(/[.?()]/g, "\\$&").replace(/\{(\w+)\}/g, "(?<$1>[^]*?)");
      const match = new RegExp(`^${escaped}$`).exec(text);
      if (match) return translation.replace(/\{(\w+)\}/g, (all, name) =>
        name === "error" ? translated(match.groups.error) : match.groups[name]);
    }
    return text;
  }
  const count = (number) => new Intl.NumberFormat(state.language).format(number);
  const short = (number) =>
    number === null ? "–" : new Intl.NumberFormat(state.language, { maximumSignificantDigits: 4 }).format(number);

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
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

  // Markdown; each of its texts may become several nodes
  const built = (blocks, leaf = (text) => [text]) => blocks.flatMap((one) => {
    if (typeof one === "string") return leaf(one);
    const [tag, attributes, ...children] = one;
    const element = make(tag, attributes, ...built(children, tag === "code" ? undefined : leaf));
    return [tag === "table" ? make("div", { class: "scroll" }, element) : element];
  });
  const markdown = (blocks, text, attributes, leaf) =>
    make("div", { lang: languageOf(text), dir: "auto", ...attributes }, ...built(blocks, leaf));

  // The name of a group as a visitor would say it
  const groupName = (name) => words[state.language][`group_${name.replace(/^.* (?=sentence$|entity$)/, "")}`] ?? name;
  // "page 3, Results", with the page in the language of this one
  const placeOf = (record) => record.place.replace(/^[^,]+/, translated);
  const standsIn = (record) => [record.folder, placeOf(record)].filter(Boolean).join(" · ");

  const button = (word, onclick, attributes = {}) =>
    make("button", { type: "button", onclick, ...attributes }, say(word));

  // Requests

  async function request(path, body, signal) {
    const options = body === undefined ? {} : {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
    };
    let response;
    try {
      response = await fetch(`api/${path}`, { ...options, signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error(say("offline"));
    }
    if (response.ok) return response;
    const error = await response.text() || `${response.status}`;
    let record = { error, kind: response.status === 401 ? "token" : "request" };
    try { record = { ...record, ...JSON.parse(error) }; } catch { /* it is no JSON: the text itself says it */ }
    throw new Error(reason(record));
  }
  const reason = (record) => say(`error_${record.kind}`, { ...record, error: translated(record.error) });
  const get = async (path, values) =>
    (await request(`${path}?${new URLSearchParams(values)}`)).json();
  const post = async (path, body) => (await request(path, body)).json();

  const wrong = (error) => written("p", error.message, { class: "wrong", role: "alert" });

  // A passage in its document

  const passage = byId("passage");
  let opened = null;

  async function openPassage(node, reach = 3000, span = null) {
    const part = span ? { start: span.start, end: span.end } : {};
    let record;
    try {
      record = await get("passage", { node, reach, ...part });
    } catch (error) {
      record = { title: node, place: "", group: "", size: 0, text: error.message, blocks: [error.message] };
    }
    opened = { node, reach, span, page: record.page, pages: record.pages ?? 0 };
    byId("passage-title").textContent = record.title;
    const text = [standsIn(record), groupName(record.group), say("place", { count: count(record.size) })].filter(Boolean).join(" · ");
    byId("passage-place").textContent = record.generated ? `${text} · ${say("generated")}` : text;
    const cut = (number) => (number ? make("p", { class: "quiet" }, `… ${say("characters", { count: count(number) })} …`) : null);
    const body = markdown(record.blocks, record.text, { class: "passage" });
    opened.text = [cut(record.more_before), body, cut(record.more_after)].filter(Boolean);
    opened.hasMore = Boolean(record.more_before || record.more_after);
    if (!passage.open) passage.showModal();
    drawPassage();
    if (opened.pages && state.asPicture) return;
    const marks = body.querySelectorAll("mark");
    const [first, last] = [marks[0] ?? body, marks[marks.length - 1] ?? body];
    const height = last.getBoundingClientRect().bottom - first.getBoundingClientRect().top;
    first.scrollIntoView({ block: height > byId("passage-text").clientHeight / 2 ? "start" : "center" });
  }
  // The text, or the page of a PDF with the passage marked; the page opens alone, too
  function drawPassage() {
    const { node, span, page, pages } = opened;
    const asPicture = Boolean(pages) && state.asPicture;
    byId("passage-page").hidden = !pages;
    byId("passage-page").textContent = say(asPicture ? "show_text" : "show_page");
    byId("page-before").hidden = byId("page-after").hidden = !asPicture;
    byId("page-before").disabled = page <= 1;
    byId("page-after").disabled = page >= pages;
    byId("passage-more").hidden = asPicture || !opened.hasMore;
    if (!asPicture) return byId("passage-text").replaceChildren(...opened.text);
    const values = { node, page, ...(span ? { start: span.start, end: span.end } : {}) };
    const address = `api/picture?${new URLSearchParams(values)}`;
    const failed = () => get("picture", values).catch((error) =>
      byId("passage-text").replaceChildren(wrong(error), ...opened.text));
    const image = make("img", { src: address, onerror: failed,
      alt: say("page_picture", { page, pages, title: byId("passage-title").textContent }) });
    byId("passage-text").replaceChildren(make("a", { href: address, target: "_blank", rel: "noopener" }, image));
  }
  function turnPage(step) {
    opened.page += step;
    drawPassage();
  }
  byId("passage-page").addEventListener("click", () => {
    state.asPicture = !state.asPicture;
    drawPassage();
  });
  byId("page-before").addEventListener("click", () => turnPage(-1));
  byId("page-after").addEventListener("click", () => turnPage(1));
  byId("passage-close").addEventListener("click", () => passage.close());
  byId("passage-more").addEventListener("click", () => openPassage(opened.node, opened.reach * 8, opened.span));
  passage.addEventListener("click", (event) => { if (event.target === passage) passage.close(); });

  // Ask

  const CITATION = /[[【［]([\d\s,，、;；\-–]+)[\]】］]/g;

  const openSource = (source) => openPassage(source.id, undefined, source.hit);

  // An answer's text with its citations as buttons
  function cited(text, sources) {
    const known = new Map(sources.map((source) => [source.number, source]));
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(CITATION)) {
      const numbers = [...match[1].matchAll(/\d+/g)].map((one) => Number(one[0]));
      if (!numbers.length || !numbers.every((number) => known.has(number))) continue;
      parts.push(text.slice(end, match.index));
      for (const number of numbers) {
        const label = say("open_source", { number });
        parts.push(make("button", { type: "button", class: "citation", "aria-label": label,
          title: known.get(number).title, onclick: () => openSource(known.get(number)) }, `${number}`));
      }
      end = match.index + match[0].length;
    }
    parts.push(text.slice(end));
    return parts;
  }

  function sourceItem(source, anyCited) {
    const aside = anyCited && source.cited === false ? make("span", { class: "chip only" }, say("not_cited")) : null;
    return make("li", {},
      make("div", { class: "line" }, make("span", { class: "rank" }, `${source.number}`),
        written("button", source.title, { type: "button", class: "link", onclick: () => openSource(source) }),
        written("small", standsIn(source)), aside),
      markdown(source.cut ? [...source.blocks, " …"] : source.blocks, source.text, { class: "passage clipped" }));
  }

  // A quotation of the answer: whether it stands in the sources, and where
  function quoteItem(quote, sources) {
    const source = sources.find((one) => one.number === quote.source);
    return make("li", {},
      make("span", { class: `chip quote-${quote.status}` }, say(`quote_${quote.status}`)), " ",
      written("q", quote.text), " ",
      source ? written("button", `${source.number} ${placeOf(quote.spans[0]) || source.title}`,
        { type: "button", class: "link", onclick: () => openPassage(source.id, undefined, quote.spans[0]) }) : null);
  }

  function drawTurn(turn) {
    const element = turn.element ?? (turn.element = make("article", { class: "turn" }));
    const anyCited = turn.sources.some((source) => source.cited);
    const notes = [...turn.notes];
    if (turn.state === "stopped") notes.push(say("stopped"));
    const ended = turn.state !== "running";
    if (ended && !turn.sources.length && !turn.error && turn.state !== "stopped" && !turn.text) notes.push(say("not_found"));
    const isWaiting = !ended && !turn.text && !turn.sources.length;
    const open = element.querySelector("details")?.open ?? (!state.corpus.model);
    const list = turn.sources.length ? make("details", { open: open || Boolean(turn.error) },
      make("summary", {}, `${say(state.corpus.model ? "sources" : "passages")} (${turn.sources.length})`),
      make("ol", { class: "sources" }, ...turn.sources.map((source) => sourceItem(source, anyCited)))) : null;
    element.replaceChildren(...[
      written("h3", turn.question),
      isWaiting ? make("p", { class: "quiet waiting" }, say("searching")) : null,
      turn.text ? markdown([...turn.blocks, turn.pending], turn.text, { class: `answer${ended ? "" : " writing"}`,
        "aria-live": "polite", "aria-busy": `${!ended}` }, (text) => cited(text, turn.sources)) : null,
      turn.error ? wrong(new Error(say("failed", { error: turn.error }))) : null,
      ...notes.map((note) => written("p", note, { class: "quiet note" })),
      turn.quotes?.length ? make("ul", { class: "quotes", "aria-label": say("quotes") },
        ...turn.quotes.map((quote) => quoteItem(quote, turn.sources))) : null,
      list,
    ].filter(Boolean));
  }

  function drawTurns() {
    const empty = make("p", { class: "quiet empty" }, say(state.corpus.model ? "ask_empty" : "ask_empty_passages"));
    state.turns.forEach(drawTurn);
    byId("turns").replaceChildren(...(state.turns.length ? state.turns.map((turn) => turn.element) : [empty]));
    byId("new").hidden = !state.turns.length;
    const { model, min_score: score } = state.corpus;
    byId("model").textContent = [model ? say("model", { model }) : say("no_model"),
      score === null ? "" : say("min_score", { score: short(score) })].filter(Boolean).join(" · ");
  }

  function storeTurns() {
    const plain = state.turns.map(({ element, ...turn }) => turn);
    try { sessionStorage.setItem("nodekin.turns", JSON.stringify(plain.slice(-30))); } catch { /* full, or off */ }
  }

  async function ask(question) {
    const history = state.turns.filter((turn) => turn.state === "ended" && turn.text)
      .map(({ question, text }) => ({ question, answer: text }));
    const turn = { question, text: "", blocks: [], pending: "", sources: [], notes: [], quotes: [], error: "", state: "running" };
    state.turns.push(turn);
    drawTurns();
    turn.element.scrollIntoView({ block: "start" });
    const abort = state.running = new AbortController();
    byId("stop").hidden = false;
    let drawing = 0;
    const draw = () => { drawing ||= requestAnimationFrame(() => { drawing = 0; drawTurn(turn); }); };
    try {
      const response = await request("ask", { question, history }, abort.signal);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const lines = (rest + part.value).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          const event = JSON.parse(line);
          if (event.type === "text") { turn.text += event.text; turn.pending += event.text; }
          else if (event.type === "blocks") { turn.blocks.push(...event.blocks); turn.pending = event.pending; }
          else if (event.type === "sources") turn.sources = event.sources;
          else if (event.type === "error") turn.error = reason(event);
          else if (event.type === "end") { turn.notes = event.notes; turn.quotes = event.quotes ?? []; turn.state = "ended"; }
        }
        draw();
      }
      if (turn.state === "running" && !turn.error) turn.error = say("offline");
      turn.state = "ended";
    } catch (error) {
      turn.state = abort.signal.aborted ? "stopped" : "ended";
      if (!abort.signal.aborted) turn.error = error.message;
    }
    cancelAnimationFrame(drawing);
    if (state.running === abort) { state.running = null; byId("stop").hidden = true; }
    drawTurn(turn);
    storeTurns();
  }

  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const question = byId("question").value.trim();
    if (!question || state.running) return;
    byId("question").value = "";
    ask(question);
  });
  byId("question").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("ask-form").requestSubmit();
  });
  const stop = () => { state.running?.abort(); byId("question").focus(); };
  byId("stop").addEventListener("click", stop);
  byId("new").addEventListener("click", () => {
    state.running?.abort();
    state.turns = [];
    storeTurns();
    drawTurns();
    byId("question").focus();
  });

  // Search

  let found = null;
  let searching = 0;

  async function search() {
    const query = byId("query").value.trim();
    if (!query) return;
    const turn = ++searching;
    const top_k = Number(byId("top-k").value) || null;
    byId("search-state").textContent = say("searching");
    let error = null;
    try {
      const record = await post("search", { query, top_k });
      if (turn !== searching) return;
      found = record;
    } catch (raised) {
      if (turn !== searching) return;
      [found, error] = [null, raised];
    }
    byId("search-state").textContent = "";
    drawResults(error);
  }

  // The way from the query to the result: query form -> hit -> lift -> rank
  function pathOf(match, result) {
    const step = (label, ...content) => make("li", {}, make("small", {}, label), ...content.filter(Boolean));
    const earlier = match.variants.map((one) => step(one.strategy, written("span", one.query), one.note ? written("small", one.note, { class: "wrong" }) : null));
    const key = match.embed_key ? ` (${match.embed_key})` : "";
    const why = match.similarity.startsWith("bm25") ? "same_words" : match.similarity === "cosine" ? "same_meaning" : null;
    const name = `${match.similarity}${key}`;
    const hit = [make("b", {}, `${why ? say(why, { name }) : name} ${short(match.score)}`)];
    hit.push(match.itself ? make("span", { class: "quiet" }, say("path_itself")) : written("span", match.text, { class: "clipped two-lines" }));
    if (match.searched_with.length) hit.push(written("small", say("searched_with", { names: match.searched_with.join(", ") })));
    const steps = [...earlier, step(say("path_query"), written("span", match.query, { class: "clipped two-lines" })),
      step(say("path_hit", { group: groupName(match.group) }), ...hit)];
    if (!match.itself) steps.push(step(say("path_shown", { group: groupName(result.group) }), match.share === null ? null : make("b", {}, say("share", { share: short(match.share) }))));
    else if (match.share !== null) hit.push(make("small", {}, say("share", { share: short(match.share) })));
    if (match.itself && match.share !== null) steps[steps.length - 1] = step(say("path_hit", { group: groupName(match.group) }), ...hit);
    steps.push(step(say("path_rank", { rank: result.rank }), make("b", {}, say("score", { score: short(result.score) }))));
    return make("ol", { class: "path" }, ...steps);
  }

  function resultItem(result) {
    const [first, ...rest] = result.matches;
    return make("li", {},
      make("div", { class: "line" }, make("span", { class: "rank" }, `${result.rank}`),
        written("button", result.title, { type: "button", class: "link", onclick: () => openPassage(result.id) }),
        written("small", standsIn(result))),
      markdown(result.cut ? [...result.blocks, " …"] : result.blocks, result.text.join(""), { class: "passage clipped" }),
      first ? pathOf(first, result) : null,
      rest.length ? make("details", { class: "evidence" }, make("summary", {}, say(rest.length === 1 ? "one_more_way" : "more_ways", { count: rest.length })),
        ...rest.map((match) => pathOf(match, result))) : null);
  }

  function stageItem(stage) {
    const values = Object.entries(stage.attributes).map(([key, value]) => `${key}=${value}`).join("  ");
    const line = `${stage.name}  ${values}  ${stage.milliseconds === null ? "" : `${short(stage.milliseconds)} ms`}`;
    return make("li", {}, written("span", line), stage.error ? written("p", stage.error, { class: "wrong" }) : null,
      stage.children.length ? make("ul", {}, ...stage.children.map(stageItem)) : null);
  }

  function drawResults(error = null) {
    const list = byId("results");
    if (!found) { list.replaceChildren(...(error ? [wrong(error)] : [])); return; }
    const { results, stages, milliseconds } = found;
    const head = results.length ? say(results.length === 1 ? "one_found" : "found_in", { count: count(results.length), ms: short(milliseconds) }) : say("none_found");
    list.replaceChildren(
      make("p", { class: "quiet" }, head),
      make("ol", { class: "ranking" }, ...results.map(resultItem)),
      make("details", { class: "stages" }, make("summary", {}, say("stages")), make("ul", {}, ...stages.map(stageItem))));
  }

  byId("search-form").addEventListener("submit", (event) => { event.preventDefault(); search(); });

  // Documents

  function drawFailures() {
    const { count: left, first } = state.corpus.failures;
    byId("failures").replaceChildren(...(left ? [make("details", {}, make("summary", {}, say(left === 1 ? "one_failure" : "failures", { count: count(left) })),
      make("ul", {}, ...first.map((one) => written("li", `${one.document}: ${translated(one.reason)}`))))] : []));
  }

  let listing = 0;

  async function listDocuments(skip) {
    const turn = ++listing;
    const like = byId("like").value;
    let page;
    try {
      page = await get("documents", { skip, like });
    } catch (error) {
      byId("documents").replaceChildren(wrong(error));
      return;
    }
    if (turn !== listing) return;
    const { documents, total } = page;
    const last = skip + documents.length;
    const values = { first: count(skip + 1), last: count(last), count: count(total) };
    byId("documents-count").textContent = total === 1 ? say("one_document") : !total ? say("no_documents") : last - skip < total ? say("documents_page", values) : say("documents_count", values);
    byId("documents").replaceChildren(...documents.map(documentItem));
    const size = Math.max(documents.length, 50);
    byId("pager").replaceChildren(...(total > size ? [
      button("previous", () => listDocuments(Math.max(0, skip - size)), { disabled: !skip }),
      button("next", () => listDocuments(skip + size), { disabled: last >= total })] : []));
  }

  const documentItem = ({ id, title, characters }) => make("li", { class: "line" },
    written("button", title, { type: "button", class: "link", onclick: () => openPassage(id) }),
    title === id ? null : written("small", id),
    make("small", {}, say("characters", { count: count(characters) })));

  let typing = 0;
  byId("like").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => listDocuments(0), 200); });
  byId("documents-form").addEventListener("submit", (event) => { event.preventDefault(); listDocuments(0); });

  // The frame

  function setTheme(theme = root.dataset.theme) {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    if (theme) root.dataset.theme = theme;
    byId("theme").textContent = say((theme ?? system) === "dark" ? "to_light" : "to_dark");
    byId("theme").value = (theme ?? system) === "dark" ? "light" : "dark";
  }

  function setLanguage(language) {
    state.language = language;
    root.lang = language === "zh" ? "zh-Hans" : "en";
    for (const element of document.querySelectorAll("[data-word]")) element.textContent = say(element.dataset.word);
    for (const element of document.querySelectorAll("[data-placeholder]")) element.placeholder = say(element.dataset.placeholder);
    byId("language").textContent = language === "zh" ? "English" : "中文";
    byId("language").lang = language === "zh" ? "en" : "zh-Hans";
    setTheme();
    if (state.corpus) draw();
  }

  function draw() {
    drawTurns();
    drawResults();
    drawFailures();
    showView();
  }

  function showView() {
    const view = location.hash.slice(1).split("?")[0];
    state.view = VIEWS.includes(view) ? view : "ask";
    byId("view-ask").hidden = state.view !== "ask";
    byId("view-search").hidden = state.view !== "search";
    byId("view-corpus").hidden = state.view !== "corpus";
    for (const link of document.querySelectorAll("nav a")) {
      if (link.hash === `#${state.view}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${say(state.view)} · ${state.corpus?.title || "nodekin"}`;
    if (state.corpus && state.view === "corpus" && !listing) listDocuments(0);
  }

  byId("language").addEventListener("click", () => setLanguage(state.language === "zh" ? "en" : "zh"));
  byId("theme").addEventListener("click", (event) => setTheme(event.target.value));
  addEventListener("hashchange", showView);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.running && !passage.open) stop();
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || passage.open) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    byId({ ask: "question", corpus: "like" }[state.view] ?? "query").focus();
  });

  setLanguage(/^zh/i.test(navigator.language) ? "zh" : "en");
  showView();
  byId("state").textContent = say("loading");
  try {
    state.corpus = await get("corpus", {});
    byId("state").hidden = true;
    byId("title").textContent = state.corpus.title || "nodekin";
    try {
      state.turns = JSON.parse(sessionStorage.getItem("nodekin.turns") ?? "[]")
        .map((turn) => ({ blocks: [], pending: turn.blocks ? "" : turn.text, ...turn, state: turn.state === "running" ? "stopped" : turn.state }));
    } catch { state.turns = []; }
    draw();
    root.dataset.ready = "true";
  } catch (error) {
    byId("state").replaceChildren(wrong(error));
  }
})();

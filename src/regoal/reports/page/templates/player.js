"use strict";
(function () {
  const PLANS = DATA.watched.plans, DRAWINGS = DATA.watched.drawings;
  const SVG = "http://www.w3.org/2000/svg";
  const PAINTS = ["white", "black", "red", "green", "blue", "yellow", "orange", "purple", "brown", "grey"];
  const MOST_FACTS = 300, MOST_NAMES = 4, STEP_MS = 700;
  const $ = (id) => document.getElementById(id);
  const scene = $("scene");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let plan, drawing, at = 0, timer = 0, texts, trueNow, build, trails, labels;

  // Facts and patterns --------------------------------------------------------------------------

  /** All ways to give the variables of joined patterns objects so that they are true now. */
  function match(patterns, bound = {}) {
    let found = [bound];
    for (const [predicate, ...words] of patterns) {
      const facts = index.get(predicate) || [];
      found = found.flatMap((known) => facts.flatMap((fact) => {
        if (fact.length !== words.length + 1) return [];
        const here = { ...known };
        const fits = words.every((word, i) => {
          if (!word.startsWith("?")) return word === fact[i + 1];
          if (word in here) return here[word] === fact[i + 1];
          here[word] = fact[i + 1];
          return true;
        });
        return fits ? [here] : [];
      }));
    }
    return patterns.length ? found : [];
  }

  let index = new Map();
  function indexFacts(facts) {
    index = new Map();
    for (const fact of facts) {
      if (!index.has(fact[0])) index.set(fact[0], []);
      index.get(fact[0]).push(fact);
    }
  }
  const indexNow = () => indexFacts([...trueNow].map((number) => texts[number]));

  /** What a function returns if only the facts that the goal wants were true. */
  function inGoal(ask) {
    indexFacts(plan.goal.filter((n) => n > 0).map((n) => texts[n - 1]));
    const found = ask();
    indexNow();
    return found;
  }

  const holds = (literal) => trueNow.has(Math.abs(literal) - 1) === literal > 0;

  /** Goes to the state after `step` steps. */
  function go(step) {
    step = Math.max(0, Math.min(plan.steps.length, step));
    while (at < step) change(plan.steps[at++], 1);
    while (at > step) change(plan.steps[--at], -1);
    indexNow();
  }
  function change(step, direction) {
    for (const number of step.slice(1)) {
      if (number * direction > 0) trueNow.add(Math.abs(number) - 1);
      else trueNow.delete(Math.abs(number) - 1);
    }
  }

  // Elements ------------------------------------------------------------------------------------

  function icon(name, extra = "") {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "i " + extra);
    svg.setAttribute("aria-hidden", "true");
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", "#" + name);
    svg.append(use);
    return svg;
  }

  /** Short names for labels: `spanner12` is s12, unless two objects would have one label. */
  function shorten(names) {
    const short = new Map(names.map((name) => {
      const found = /^(.*?)[-_]?(\d+(?:[-_]\d+)*)$/.exec(name);
      return [name, found ? found[1].slice(0, 1) + found[2].replace(/[-_]/g, ".") : name];
    }));
    const used = new Map();
    for (const value of short.values()) used.set(value, (used.get(value) || 0) + 1);
    return new Map([...short].map(([name, value]) => [name, used.get(value) > 1 ? name : value]));
  }
  const label = (name) => labels.get(name) || name;

  /** A thing with its icon, label, note, what it holds, and a check mark if it is done. */
  function makeToken(name, look, { note = "", done = false, held = [], wanted = false } = {}) {
    const token = make("div", { class: `token s-${look.shape}` + (done ? " done" : "") + (wanted ? " wanted" : ""),
      "data-key": name, title: name + (note ? `: ${note}` : "") + (done ? ", done" : "") });
    token.append(icon("s-" + look.shape), make("span", { class: "name" }, label(name)));
    if (note) token.append(make("span", { class: "note" }, label(note)));
    if (done) token.append(icon("s-check", "check"));
    if (held.length) token.append(make("div", { class: "held" }, ...held));
    return token;
  }

  // Things at places ----------------------------------------------------------------------------

  /** Where each thing is: place → elements; held things are inside their holders. */
  function placeThings() {
    const inside = new Map(), where = new Map(), words = [];
    const lookOf = new Map(plan.things.map(([name, number]) => [name, drawing.things[number]]));
    const taken = new Set();
    for (const [name, number] of plan.things) {
      const look = drawing.things[number];
      const held = match(look.holds, { "?thing": name }).map((m) => [m["?held"], m["?slot"]]);
      inside.set(name, held);
      held.forEach(([thing]) => taken.add(thing));
    }
    const element = (name, holders = []) => {
      const look = lookOf.get(name) || { shape: "disc", note: [], done: [] };
      const [note] = match(look.note, { "?thing": name });
      const held = (inside.get(name) || []).filter(([thing]) => ![name, ...holders].includes(thing));
      const carried = held.map(([thing, slot]) => {
        const token = element(thing, [name, ...holders]);
        if (slot) token.append(make("span", { class: "slot" }, slot));
        return token;
      });
      return makeToken(name, look, {
        held: carried, done: match(look.done, { "?thing": name }).length > 0 || reached.has(name),
        note: note ? note["?note"] || look.note[0][0] : "",
      });
    };
    const reached = new Set(plan.goal.filter((n) => n > 0 && holds(n)).map((n) => texts[n - 1])
      .filter((fact) => fact.length === 3 && lookOf.has(fact[1]) &&
        lookOf.get(fact[1]).at.some((patterns) => patterns.length === 1 && patterns[0][0] === fact[0]))
      .map((fact) => fact[1]));
    for (const [name, number] of plan.things) {
      if (taken.has(name)) continue;
      for (const patterns of drawing.things[number].at) {
        const [found] = match(patterns, { "?thing": name });
        if (!found || found["?place"] === undefined) continue;
        const place = found["?place"];
        if (!where.has(place)) where.set(place, []);
        where.get(place).push(element(name));
        words.push(`${name} at ${place}`);
        break;
      }
    }
    return { where, words };
  }

  /** The places that things must reach: place → names. */
  function goalPlaces() {
    return inGoal(() => {
      const found = new Map();
      for (const [name, number] of plan.things) {
        for (const patterns of drawing.things[number].at) {
          if (patterns.length !== 1) continue;
          for (const m of match(patterns, { "?thing": name })) {
            if (!found.has(m["?place"])) found.set(m["?place"], []);
            found.get(m["?place"]).push(name);
          }
        }
      }
      return found;
    });
  }

  /** The looks of places: place → list of [mark, value]; `wanted` reads the goal instead. */
  function markPlaces(places) {
    const found = new Map(), add = (place, mark, value) => {
      if (!found.has(place)) found.set(place, []);
      found.get(place).push([mark, value]);
    };
    for (const mark of drawing.marks) {
      const matches = match(mark.on);
      if (!mark.unless) matches.forEach((m) => add(m["?place"], mark, m["?value"] || ""));
      else {
        const without = new Set(matches.map((m) => m["?place"]));
        places.filter((place) => !without.has(place)).forEach((place) => add(place, mark, ""));
      }
    }
    return found;
  }

  const lookNumber = (name) => plan.things.find(([thing]) => thing === name)[1];

  function makeMark([mark, value], wanted) {
    const classes = `mark ${mark.look}` + (wanted ? " wanted" : "");
    if (mark.look === "star") return make("span", { class: classes, title: mark.label }, icon("s-star"));
    const element = make("span", { class: classes, title: `${mark.label} ${value}` },
      ...(value ? [make("span", {}, label(value))] : []));
    if (value && PAINTS.includes(value)) element.style.setProperty("--paint", value);
    return element;
  }

  function fillPlace(element, place, things, marks, goals, wantedMarks) {
    const here = marks.get(place) || [];
    const isThere = (mark, value) => here.some(([m, v]) => m === mark && v === value);
    element.classList.toggle("wall", here.some(([mark]) => mark.look === "wall"));
    element.classList.toggle("visited", here.some(([mark]) => mark.look === "dot"));
    element.replaceChildren();
    for (const mark of here) if (mark[0].look !== "wall") element.append(makeMark(mark, false));
    for (const mark of wantedMarks.get(place) || []) {
      if (!mark[0].unless && !isThere(...mark)) element.append(makeMark(mark, true));
    }
    const aims = goals.get(place) || [];
    element.classList.toggle("aim", aims.length > 0);
    if (aims.length) {
      const objects = aims.filter((name) => !drawing.things[lookNumber(name)].name);
      const names = objects.length > MOST_NAMES ? `for ${objects.length}` : objects.map(label).join(" ");
      element.append(make("span", { class: "flag", title: "goal of " + aims.join(", ") }, icon("s-flag"),
        make("span", { class: "name" }, names)));
    }
    const tokens = things.get(place) || [];
    if (tokens.length) {
      const size = tokens.length === 1 ? 1 : tokens.length <= 4 ? 2 : tokens.length <= 9 ? 3 : 4;
      element.append(make("div", { class: "tokens n" + size }, ...tokens));
    }
  }

  function buildGrid() {
    const cells = Object.entries(plan.cells), elements = new Map();
    const columns = 1 + Math.max(...cells.map(([, [x]]) => x));
    const rows = 1 + Math.max(...cells.map(([, [, y]]) => y));
    const grid = make("div", { class: "grid" });
    grid.style.setProperty("--columns", columns);
    grid.style.setProperty("--rows", rows);
    for (const [name, [x, y]] of cells) {
      const cell = make("div", { class: "cell", title: name });
      cell.style.gridArea = `${y + 1} / ${x + 1}`;
      elements.set(name, cell);
      grid.append(cell);
    }
    const byPosition = new Map(cells.map(([name, [x, y]]) => [`${x} ${y}`, elements.get(name)]));
    for (const [x, y, side] of plan.walls) byPosition.get(`${x} ${y}`).classList.add("wall-" + side);
    scene.append(grid);
    const resize = () => grid.classList.toggle("tiny", grid.clientWidth / columns < 30);
    new ResizeObserver(resize).observe(grid);
    const goals = goalPlaces(), names = [...elements.keys()];
    const wanted = inGoal(() => markPlaces([]));
    return () => {
      const { where, words } = placeThings(), marks = markPlaces(names);
      const walked = trails ? trails.slice(0, at) : [];
      for (const [name, cell] of elements) {
        fillPlace(cell, name, where, marks, goals, wanted);
        cell.classList.toggle("trail", walked.includes(name));
      }
      return words;
    };
  }

  function buildRooms(kind) {
    const order = kind === "column" ? [...plan.places].reverse() : plan.places;
    const list = make("div", { class: "places " + kind }), bodies = new Map();
    const movers = new Set(drawing.things.filter((look) => look.holds.length));
    for (const name of order) {
      const room = make("div", { class: "place" }, make("div", { class: "place-name" }, name));
      const body = make("div", { class: "place-body" });
      const shaft = kind === "column" ? make("div", { class: "shaft" }) : null;
      if (shaft) room.append(shaft);
      room.append(body);
      bodies.set(name, [room, body, shaft]);
      list.append(room);
    }
    scene.append(list);
    const goals = goalPlaces(), wanted = inGoal(() => markPlaces([]));
    const isMover = new Set(plan.things.filter(([, n]) => movers.has(drawing.things[n])).map(([name]) => name));
    return () => {
      const { where, words } = placeThings(), marks = markPlaces(plan.places);
      for (const [name, [room, body, shaft]] of bodies) {
        const tokens = where.get(name) || [];
        const first = tokens.filter((token) => isMover.has(token.dataset.key));
        const others = tokens.filter((token) => !isMover.has(token.dataset.key));
        room.classList.toggle("here", first.length > 0);
        room.classList.toggle("empty", tokens.length === 0 && !(goals.get(name) || []).length);
        const rest = new Map([[name, shaft ? others : [...first, ...others]]]);
        fillPlace(body, name, rest, marks, goals, wanted);
        if (shaft) shaft.replaceChildren(...first);
      }
      return words;
    };
  }

  // Towers --------------------------------------------------------------------------------------

  function readTowers() {
    const { on, table, held } = drawing.towers;
    const above = new Map(match(on).map((m) => [m["?below"], m["?thing"]]));
    const below = new Set(match(on).map((m) => m["?thing"]));
    const bases = match(table).map((m) => m["?thing"]);
    const climb = (block) => {
      const tower = [];
      for (let b = block; b !== undefined && !tower.includes(b); b = above.get(b)) tower.push(b);
      return tower;
    };
    // In a goal, a tower may stand on nothing that is named.
    const loose = [...above.keys()].filter((block) => !below.has(block) && !bases.includes(block));
    return { towers: new Map([...bases, ...loose].map((base) => [base, climb(base)])),
      held: match(held).map((m) => m["?thing"]) };
  }

  /** The place of each tower in each state: a new one takes the first free place. */
  function findSlots() {
    const slots = [];
    let known = new Map();
    for (let step = 0; step <= plan.steps.length; step++) {
      go(step);
      const bases = [...readTowers().towers.keys()];
      const now = new Map(bases.filter((b) => known.has(b)).map((b) => [b, known.get(b)]));
      const used = new Set(now.values());
      for (const base of bases) {
        if (now.has(base)) continue;
        let slot = 0;
        while (used.has(slot)) slot++;
        used.add(slot);
        now.set(base, slot);
      }
      slots.push(known = now);
    }
    go(0);
    return slots;
  }

  function buildTowers() {
    const slots = findSlots();
    const width = 1 + Math.max(0, ...slots.flatMap((now) => [...now.values()]));
    const arm = make("div", { class: "arm" }), table = make("div", { class: "towers" });
    const world = make("div", { class: "world" }, make("div", { class: "now" }, arm, table));
    scene.append(world);
    const { on, table: onTable } = drawing.towers;
    const goal = inGoal(readTowers);
    const block = (name, done) => makeToken(name, { shape: "block" }, { done });
    if (goal.towers.size) {
      const small = make("div", { class: "towers small" }, ...[...goal.towers.values()].map((tower) =>
        make("div", { class: "tower" }, ...tower.map((name) => {
          const token = block(name, false);
          delete token.dataset.key;
          return token;
        }))));
      world.append(make("details", { class: "goal-towers", open: true }, make("summary", {}, "Goal"), small));
    }
    /** A block is done if all that the goal says of what is under it holds. */
    const wants = new Map();
    for (const literal of plan.goal) {
      if (literal < 0) continue;
      const [predicate, thing] = texts[literal - 1];
      if (predicate === on[0][0] || predicate === onTable[0][0]) {
        wants.set(thing, [...(wants.get(thing) || []), literal]);
      }
    }
    return () => {
      const { towers, held } = readTowers();
      arm.replaceChildren(make("span", { class: "arm-name" }, "Arm"), ...held.map((name) => block(name, false)),
        ...(held.length ? [] : [make("span", { class: "nothing" }, "empty")]));
      const columns = Array.from({ length: width }, () => make("div", { class: "tower" }));
      const words = held.map((name) => `the arm holds ${name}`);
      for (const [base, tower] of towers) {
        let fine = true;
        for (const name of tower) {
          fine = fine && (wants.get(name) || []).every(holds);
          columns[slots[at].get(base)].append(block(name, fine && wants.has(name)));
        }
        words.push("tower " + tower.join(", "));
      }
      table.replaceChildren(...columns);
      return words;
    };
  }

  // Facts, for all other domains ------------------------------------------------------------------

  function buildFacts() {
    const list = make("div", { class: "facts" });
    scene.append(list);
    const moving = new Set(plan.steps.flatMap((step) => step.slice(1).map((n) => Math.abs(n) - 1)));
    return () => {
      const latest = at ? plan.steps[at - 1].slice(1) : [];
      const fresh = new Set(latest.map((n) => Math.abs(n) - 1));
      const shown = [...moving].filter((n) => fresh.has(n) || trueNow.has(n));
      const some = shown.length > MOST_FACTS ? shown.filter((n) => fresh.has(n)) : shown;
      const groups = new Map();
      for (const n of some) {
        const name = texts[n][0];
        if (!groups.has(name)) groups.set(name, []);
        const state = !fresh.has(n) ? "" : trueNow.has(n) ? "added" : "removed";
        const sign = { added: "+ ", removed: "− " }[state] || "";
        groups.get(name).push(make("li", { class: state }, sign + (texts[n].slice(1).join(" ") || "true")));
      }
      list.replaceChildren(...[...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, items]) =>
        make("section", {}, make("h4", {}, name), make("ul", {}, ...items))));
      if (some.length < shown.length) list.prepend(make("p", { class: "note" },
        `${shown.length} facts are true; only those of this step are shown.`));
      return latest.map((n) => (n > 0 ? "now " : "no longer ") + texts[Math.abs(n) - 1].join(" "));
    };
  }

  // The player ----------------------------------------------------------------------------------

  function choose(number) {
    stop();
    plan = PLANS[number];
    drawing = DRAWINGS[plan.drawing];
    texts = plan.facts.map((fact) => fact.split(" "));
    trueNow = new Set(plan.facts.keys());
    for (let i = plan.initial; i < plan.facts.length; i++) trueNow.delete(i);
    at = 0;
    indexNow();
    const names = (plan.things || []).map(([name]) => name);
    const objects = drawing && !plan.things ? texts.flatMap((fact) => fact.slice(1)) : [];
    labels = shorten([...new Set([...names, ...objects])]);
    scene.replaceChildren();
    trails = drawing && plan.things ? findTrails() : null;
    build = !drawing ? buildFacts()
      : drawing.layout === "towers" ? buildTowers()
      : plan.cells ? buildGrid() : buildRooms(drawing.layout === "grid" ? "row" : drawing.layout);
    $("plan").value = number;
    $("position").max = plan.steps.length;
    $("steps").replaceChildren(...plan.steps.map(([text], i) => make("li", {},
      make("button", { type: "button", tabindex: "-1", onclick: () => { stop(); show(i + 1); } }, text))));
    showLegend();
    show(0);
  }

  /** The place of the things with a trail before each step. */
  function findTrails() {
    const looks = drawing.things.filter((look) => look.trail);
    if (!looks.length) return null;
    const found = [];
    for (let step = 0; step < plan.steps.length; step++) {
      go(step);
      found.push(match(looks[0].at[0]).map((m) => m["?place"])[0]);
    }
    go(0);
    return found;
  }

  function showLegend() {
    const items = [];
    if (drawing && plan.things) {
      const shapes = new Map();
      for (const [name, number] of plan.things) {
        const shape = drawing.things[number].shape;
        shapes.set(shape, [...(shapes.get(shape) || []), name]);
      }
      for (const [shape, names] of shapes) {
        const text = names.length === 1 ? names[0] : shape;
        items.push(make("li", {}, make("span", { class: "token s-" + shape }, icon("s-" + shape)), text));
      }
      for (const mark of drawing.marks) {
        items.push(make("li", {}, make("span", { class: "swatch" }, mark.look === "star" ? icon("s-star", "star")
          : make("span", { class: "mark " + mark.look })), mark.label));
      }
      if (goalPlaces().size) items.push(make("li", {}, make("span", { class: "flag" }, icon("s-flag")), "goal"));
    }
    if (plan.goal.length && drawing) items.push(make("li", {}, icon("s-check", "check"), "as the goal wants it"));
    $("legend").replaceChildren(...items);
  }

  function show(step) {
    go(step);
    const before = new Map([...scene.querySelectorAll("[data-key]")].map((e) => [e.dataset.key, [e.getBoundingClientRect(), parentKey(e)]]));
    const words = build();
    if (!still.matches && before.size) {
      for (const element of scene.querySelectorAll("[data-key]")) move(element, before.get(element.dataset.key));
    }
    const steps = plan.steps.length;
    const text = at ? `(${plan.steps[at - 1][0]})` : "initial state";
    const met = plan.goal.filter(holds).length;
    const done = plan.fault ? "" : at === steps ? ", the goal is reached" : "";
    $("say").textContent = at ? `Step ${at} of ${steps}: ${text}${done}` : `Initial state, ${steps} steps follow`;
    $("count").textContent = `${at} / ${steps}`;
    $("position").value = at;
    $("position").setAttribute("aria-valuetext", `step ${at} of ${steps}, ${text}`);
    const others = plan.others ? `, and ${plan.others} conditions that are not counted` : "";
    $("goal").replaceChildren("Goal: ", make("b", {}, `${met} of ${plan.goal.length}`), ` facts hold${others}`,
      make("progress", { max: Math.max(1, plan.goal.length), value: met, "aria-label": "Goal facts that hold" }));
    if (plan.fault) $("goal").append(make("span", { class: "fault" }, "✗ This plan is invalid: " + plan.fault));
    $("counters").replaceChildren(...(drawing ? drawing.counters : []).map(({ label, count }) =>
      make("li", {}, make("b", {}, String(match(count).length)), " " + label)));
    $("changes").replaceChildren(...(at ? plan.steps[at - 1].slice(1) : []).map((n) => make("li",
      { class: n > 0 ? "added" : "removed" }, `${n > 0 ? "+" : "−"} (${plan.facts[Math.abs(n) - 1]})`)));
    if (!at) $("changes").append(make("li", { class: "nothing" }, "nothing yet"));
    scene.setAttribute("aria-label", `State ${at} of ${steps}. ${words.slice(0, 40).join("; ")}`);
    [...$("steps").children].forEach((item, i) => {
      if (i + 1 === at) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
      item.classList.toggle("past", i + 1 < at);
    });
    const current = $("steps").children[Math.max(0, at - 1)];
    if (current) $("steps").scrollTop = current.offsetTop - $("steps").clientHeight / 2;
    follow();
  }

  /** Keeps the place of the mover in sight if the picture is taller than its frame. */
  function follow() {
    const here = scene.querySelector(".place.here");
    if (!here || scene.scrollHeight <= scene.clientHeight) return;
    const box = here.getBoundingClientRect(), frame = scene.getBoundingClientRect();
    if (box.top < frame.top) scene.scrollTop += box.top - frame.top - 8;
    if (box.bottom > frame.bottom) scene.scrollTop += box.bottom - frame.bottom + 8;
  }

  function parentKey(element) {
    const parent = element.parentElement.closest("[data-key]");
    return parent ? parent.dataset.key : "";
  }

  function move(element, known) {
    if (!known) return;
    const [old, parent] = known, now = element.getBoundingClientRect();
    if (parent && parent === parentKey(element)) return; // its holder carries it along
    const [x, y] = [old.left - now.left, old.top - now.top];
    if (Math.abs(x) + Math.abs(y) < 1) return;
    const duration = Math.min(350, 0.6 * STEP_MS / Number($("speed").value));
    element.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }],
      { duration, easing: "ease-in-out" });
  }

  function stop() {
    clearTimeout(timer);
    timer = 0;
    $("say").setAttribute("aria-live", "polite");
    setPlay("Play", "i-play");
  }
  function setPlay(text, name) {
    $("play").setAttribute("aria-label", text);
    $("play").replaceChildren(icon(name));
  }
  function play() {
    if (timer) return stop();
    if (at === plan.steps.length) show(0);
    setPlay("Stop", "i-pause");
    $("say").setAttribute("aria-live", "off");
    const tick = () => {
      show(at + 1);
      if (at >= plan.steps.length) return stop();
      timer = setTimeout(tick, STEP_MS / Number($("speed").value));
    };
    timer = setTimeout(tick, plan.steps.length ? 150 : 0);
  }

  const KEYS = { " ": play, ArrowRight: () => step(1), ArrowLeft: () => step(-1),
    Home: () => { stop(); show(0); }, End: () => { stop(); show(plan.steps.length); } };
  function step(by) { stop(); show(at + by); }

  $("player").addEventListener("keydown", (event) => {
    const inside = event.target.tagName;
    if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in KEYS)) return;
    if (inside === "SELECT" || (inside === "BUTTON" || inside === "SUMMARY") && event.key === " ") return;
    event.preventDefault();
    KEYS[event.key]();
  });
  $("first").addEventListener("click", KEYS.Home);
  $("last").addEventListener("click", KEYS.End);
  $("back").addEventListener("click", KEYS.ArrowLeft);
  $("next").addEventListener("click", KEYS.ArrowRight);
  $("play").addEventListener("click", play);
  $("position").addEventListener("input", () => { stop(); show(Number($("position").value)); });
  $("plan").addEventListener("change", () => choose(Number($("plan").value)));

  const groups = new Map();
  PLANS.forEach((of, number) => {
    if (!groups.has(of.domain)) groups.set(of.domain, make("optgroup", { label: of.domain }));
    const state = of.fault ? "invalid, " : "";
    groups.get(of.domain).append(make("option", { value: number }, `${of.domain} ${of.problem} (${state}${of.steps.length} steps)`));
  });
  $("plan").append(...groups.values());

  window.watchPlan = (number) => {
    choose(number);
    $("player").scrollIntoView({ block: "start", behavior: still.matches ? "auto" : "smooth" });
    scene.focus({ preventScroll: true });
  };
  choose(0);
})();

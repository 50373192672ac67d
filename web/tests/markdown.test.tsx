import { render } from "preact";
import { expect, it } from "vitest";
import { Markdown } from "../src/markdown/Markdown";
import { safeLink } from "../src/markdown/links";
import { closeMarks } from "../src/markdown/open_marks";

function drawn(text: string, isGrowing = false): HTMLElement {
  const place = document.createElement("div");
  render(<Markdown text={text} isGrowing={isGrowing} />, place);
  return place;
}

it("draws what is HTML as the text that it is", () => {
  const place = drawn(
    '<script>x</script>\n\n<img src=x onerror="y"> and <b>bold</b>\n\n| <i>a</i> |\n|---|\n| b<br>c |\n',
  );
  expect(place.querySelector("script, img, b, i")).toBeNull();
  expect(place.textContent).toContain("<script>x</script>");
  expect(place.querySelectorAll("td br").length).toBe(1);
});

it("loads no image, and says what it would show", () => {
  const place = drawn("![a cat](https://example.org/cat.png)");
  expect(place.querySelector("img")).toBeNull();
  expect(place.querySelector("a")?.textContent).toContain("a cat");
});

it.each([
  "javascript:x",
  "JaVaScRiPt:x",
  " javascript:x",
  "data:text/html,x",
  "vbscript:x",
  "/api/logout",
  "chat/1",
  "#x",
  "file:///x",
])("does not follow %s", (address) => expect(safeLink(address)).toBeNull());

it.each(["https://example.org/a?b#c", "http://example.org/", "mailto:a@example.org"])("follows %s", (address) =>
  expect(safeLink(address)).toBe(address),
);

it.each([
  ["It costs $5 and $10.", 0],
  ["From $5 to $7, or 8$.", 0],
  ["Let $x$ be $y^2$.", 2],
  ["Let \\(x\\) be so that \\[y = 1\\] holds.", 2],
  ["A shell's $HOME and $PATH", 0],
  ["$$\nx\n$$", 1],
  ["`$x$`", 0],
])("finds the formulas of %s", (text, count) => {
  expect(drawn(text).querySelectorAll(".formula").length).toBe(count);
});

it.each([
  ["a **bo", "a **bo**"],
  ["a **bold** and `co", "a **bold** and `co`"],
  ["see [the pa", "see [the pa"],
  ["see [the page](https://exa", "see the page"],
  ["a *", "a "],
  ["done **here**", "done **here**"],
])("closes what %j leaves open", (text, closed) => expect(closeMarks(text)).toBe(closed));

it("keeps the lines of a poem", () => {
  expect(drawn("静かさや\n岩にしみ入る\n蝉の声").querySelectorAll("p br").length).toBe(2);
});

it.each([
  ["これは**「強調」**です", "「強調」"],
  ["これは**強調（きょうちょう）**です", "強調（きょうちょう）"],
  ["文字。**「`a*b` と *c*」**です", "「a*b と c」"],
  ["普通の**太字**です", "太字"],
  ["plain **bold**.", "bold"],
  ["2 ** 3 and 4 ** 5", undefined],
  ["日本語の ** 「星」 ** です", undefined],
])("finds what is strong in %s", (text, strong) => {
  expect(drawn(text).querySelector("strong")?.textContent).toBe(strong);
});

it.each([
  ["見て、https://example.org。次", "https://example.org/"],
  ["（https://example.org/a?b=1）を見て", "https://example.org/a?b=1"],
  ["https://example.org/日本語 です", "https://example.org/%E6%97%A5%E6%9C%AC%E8%AA%9E"],
])("ends the address in %s where the sentence goes on", (text, address) => {
  expect(drawn(text).querySelector("a")?.getAttribute("href")).toBe(address);
});

it("shows a footnote as it was written", () => {
  expect(drawn("End.[^1]\n\n[^1]: Why").textContent).toBe("End.[^1][^1]: Why");
});

it("grows like it is drawn at once", () => {
  const text = "# A\n\nb **c** `d`\n\n```js\nlet x\n```\n\n- e\n- f\n\n| g |\n|---|\n| h |\n\nend";
  const place = document.createElement("div");
  for (let i = 1; i <= text.length; i++)
    render(<Markdown text={text.slice(0, i)} isGrowing={i < text.length} />, place);
  expect(place.innerHTML).toBe(drawn(text).innerHTML);
});

it("keeps the elements of finished blocks while more is written", () => {
  const place = document.createElement("div");
  render(<Markdown text={"One.\n\nTwo.\n\nThree.\n"} isGrowing />, place);
  const first = place.querySelector("p");
  render(<Markdown text={"One.\n\nTwo.\n\nThree.\n\nFour.\n\nFive"} isGrowing />, place);
  expect(place.querySelector("p")).toBe(first);
});

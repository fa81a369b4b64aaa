"use strict";
// The words of each text that the other lacks, as ranges of characters: the rest is their longest common part.
function differences(a, b) {
  const [left, right] = [a, b].map((text) => [...text.matchAll(/[\p{L}\p{N}\p{M}]+|[^\s\p{L}\p{N}\p{M}]/gu)]);
  const common = left.map(() => new Uint16Array(right.length + 1));
  common.push(new Uint16Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      common[i][j] = left[i][0] === right[j][0] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const [onlyA, onlyB] = [[], []];
  if (common[0][0] < Math.min(left.length, right.length) / 3) return [onlyA, onlyB]; // another answer altogether
  const add = (ranges, word) => {
    const last = ranges.at(-1);
    const text = ranges === onlyA ? a : b;
    if (last && !text.slice(last[1], word.index).trim()) last[1] = word.index + word[0].length;
    else ranges.push([word.index, word.index + word[0].length]);
  };
  for (let i = 0, j = 0; i < left.length || j < right.length;) {
    if (i < left.length && j < right.length && left[i][0] === right[j][0]) { i++; j++; }
    else if (j >= right.length || (i < left.length && common[i + 1][j] >= common[i][j + 1])) add(onlyA, left[i++]);
    else add(onlyB, right[j++]);
  }
  return [onlyA, onlyB];
}

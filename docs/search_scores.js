// Scores of search results: users' pages before developers' pages, otherwise as Sphinx has them.
const DEVELOPERS = ["architecture", "programs", "reference/files"];
var Scorer = {
  score: ([page, , , , score]) => (DEVELOPERS.includes(page) ? score - 100 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

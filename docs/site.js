// The theme puts wide tables, by script, into boxes that scroll: let the keyboard reach them.
const reach = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) box.tabIndex = 0;
};
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
reach();

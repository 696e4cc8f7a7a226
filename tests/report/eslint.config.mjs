// What `make lint-js` looks for in the report's scripts, which share one scope and are run as one.
const names = `addEventListener atob devicePixelRatio document getComputedStyle ImageData innerHeight
  innerWidth matchMedia requestAnimationFrame ResizeObserver scrollX scrollY uPlot`;

export default [
  {
    languageOptions: {
      ecmaVersion: 2022,
      sourceType: "script",
      globals: Object.fromEntries(names.split(/\s+/).map((name) => [name, "readonly"])),
    },
    rules: {
      "array-callback-return": "error",
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-const-assign": "error",
      "no-dupe-keys": "error",
      "no-eval": "error",
      "no-fallthrough": "error",
      "no-implied-eval": "error",
      "no-redeclare": "error",
      "no-self-assign": "error",
      "no-undef": "error",
      "no-unreachable": "error",
      "no-unused-vars": "error",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];

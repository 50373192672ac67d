/** The page's own icons: strokes on a field of 24 by 24, in the colour of the text around them. */

const PATHS = {
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h10v11H9zM15 9V5H5v10h4",
  check: "M5 12.5l4.5 4.5L19 7",
  cross: "M6 6l12 12M18 6L6 18",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  again: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4.5h4.5",
  up: "M7 11v9H4v-9zM7 11l4-8c1.5 0 2.5 1 2.5 2.5V9H19a1.5 1.5 0 0 1 1.5 1.8l-1.4 7.4A2 2 0 0 1 17 20H7",
  down: "M17 13V4h3v9zM17 13l-4 8c-1.5 0-2.5-1-2.5-2.5V15H5a1.5 1.5 0 0 1-1.5-1.8l1.4-7.4A2 2 0 0 1 7 4h10",
  menu: "M4 6h16M4 12h16M4 18h10",
  panel: "M4 5h16v14H4zM9.5 5v14",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16.5 16.5L20 20",
  sliders: "M4 7h9M17 7h3M4 17h3M11 17h9M13 7a2 2 0 1 0 4 0 2 2 0 1 0-4 0M7 17a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
  clip: "M19 11.5l-7.8 7.8a4.5 4.5 0 0 1-6.4-6.4l8.2-8.1a3 3 0 0 1 4.2 4.2l-8 8a1.5 1.5 0 0 1-2.1-2.1l7.2-7.3",
  chevron: "M9 6l6 6-6 6",
  arrowDown: "M12 5v14M6 13l6 6 6-6",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  outside: "M14 5h5v5M19 5l-8 8M12 7H5v12h12v-7",
  tool: "M14.5 6.5a4 4 0 0 1 5 5L17 9.500l-2.500 0 0-2.500zM14 10l-9 9",
  spark: "M12 4l1.8 5.2L19 11l-5.200 1.800L12 18l-1.800-5.200L5 11l5.200-1.800z",
  command: "M8 18L16 6",
  logout: "M10 5H5v14h5M15 8l4 4-4 4M19 12H9",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The icon that an app names: one of ours, or else the first letters of what it is for. */
export function NamedIcon({ name, label }: { readonly name: string | null | undefined; readonly label: string }) {
  if (name && Object.hasOwn(PATHS, name)) return <Icon name={name as IconName} />;
  if (name && /^\p{Extended_Pictographic}/u.test(name)) return <span class="emoji">{name}</span>;
  if (name && /^(?:files|public|avatars)\//.test(name))
    return <img class="icon" src={name} alt="" width={18} height={18} />;
  return label === "" ? null : (
    <span class="initial" aria-hidden="true">
      {[...label][0]}
    </span>
  );
}

//! Splits Rust source into the few kinds of tokens that paths consist of.

/// A token; comments, white space and what is inside of literals are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier or a keyword, without `r#`.
    Word(String),
    /// `::`
    Path,
    /// Any other character that is not white space; a literal is one `'"'`.
    Mark(char),
}

impl Token {
    /// Returns the identifier or keyword, if the token is one.
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// Returns the tokens of a source file.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let text: Vec<char> = source.chars().collect();
    let at = |index: usize| text.get(index).copied().unwrap_or('\0');
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < text.len() {
        match at(i) {
            '/' if at(i + 1) == '/' => i = end_of_line(&text, i),
            '/' if at(i + 1) == '*' => i = end_of_comment(&text, i),
            '"' => {
                i = end_of_string(&text, i + 1);
                tokens.push(Token::Mark('"'));
            }
            '\'' => i = end_of_quote(&text, i, &mut tokens),
            ':' if at(i + 1) == ':' => {
                tokens.push(Token::Path);
                i += 2;
            }
            c if c.is_alphabetic() || c == '_' => {
                let end = end_of_word(&text, i);
                let word: String = text[i..end].iter().collect();
                i = match (word.as_str(), at(end)) {
                    ("r" | "br" | "cr", '"' | '#') if let Some(end) = end_of_raw_string(&text, end) => {
                        tokens.push(Token::Mark('"'));
                        end
                    }
                    ("b" | "c", '"' | '\'') => end,
                    ("r", '#') => end + 1,
                    _ => {
                        tokens.push(Token::Word(word));
                        end
                    }
                };
            }
            c if c.is_whitespace() => i += 1,
            c if c.is_ascii_digit() => i = end_of_word(&text, i),
            c => {
                tokens.push(Token::Mark(c));
                i += 1;
            }
        }
    }
    tokens
}

fn end_of_line(text: &[char], start: usize) -> usize {
    text[start..].iter().position(|&c| c == '\n').map_or(text.len(), |length| start + length)
}

fn end_of_word(text: &[char], start: usize) -> usize {
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
    text[start..].iter().position(|c| !is_part(c)).map_or(text.len(), |length| start + length)
}

/// Returns the end of a comment between `/*` and `*/`, which may contain others.
fn end_of_comment(text: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut i = start;
    while i < text.len() {
        match (text[i], text.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i
}

/// Returns where a string ends whose first character is at `start`.
fn end_of_string(text: &[char], start: usize) -> usize {
    let mut i = start;
    while i < text.len() {
        match text[i] {
            '"' => return i + 1,
            '\\' => i += 2,
            _ => i += 1,
        }
    }
    text.len()
}

/// Returns the end of the raw string whose `#` or `"` is at `start`; `None` if it is a raw identifier.
fn end_of_raw_string(text: &[char], start: usize) -> Option<usize> {
    let hashes = text[start..].iter().take_while(|&&c| c == '#').count();
    let mut i = start + hashes;
    if text.get(i) != Some(&'"') {
        return None;
    }
    i += 1;
    while i < text.len() {
        if text[i] == '"' && text[i + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes {
            return Some(i + 1 + hashes);
        }
        i += 1;
    }
    Some(text.len())
}

/// Skips a character literal or the quote of a lifetime.
fn end_of_quote(text: &[char], start: usize, tokens: &mut Vec<Token>) -> usize {
    let is_literal = text.get(start + 1) == Some(&'\\') || text.get(start + 2) == Some(&'\'');
    if !is_literal {
        return end_of_word(text, start + 1);
    }
    tokens.push(Token::Mark('"'));
    let first = if text.get(start + 1) == Some(&'\\') { start + 3 } else { start + 2 };
    text[first.min(text.len())..]
        .iter()
        .position(|&c| c == '\'')
        .map_or(text.len(), |length| first + length + 1)
}

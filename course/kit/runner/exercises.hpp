// Finds the exercises that are built, and reads their files.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tally::lesson {

struct Exercise {
    int number = 0;
    std::string slug, title;
    int minutes = 0;
    std::string lesson;
    std::vector<std::string> functions, hints;
    std::string why;
    std::vector<std::pair<std::string, std::string>> mistakes;  // name and message

    std::string name() const;    // the_tail: the learner's file is the_tail.cpp, wherever the exercise stands
    std::string folder() const;  // 07_the_tail
};

struct Exercises {
    explicit Exercises(const std::string& folder);  // the build's folder; throws std::runtime_error

    // Finds an exercise by slug, part of a slug, folder or number. If no single exercise matches, returns
    // nullptr and sets `message`.
    const Exercise* find(const std::string& which, std::string& message) const;

    std::string starting_text(const Exercise& exercise) const;
    // Returns the code of an answer without the #include line. `name` is "right" or the name of a mistake.
    std::string answer(const Exercise& exercise, const std::string& name) const;
    std::string whole_answer(const Exercise& exercise, const std::string& name) const;
    std::string given(const Exercise& exercise) const;  // the text of given.hpp
    std::string declaration(const Exercise& exercise, const std::string& function) const;

    std::string checks;                 // the program that checks answers
    std::string mistakes;               // the folder with the mistakes as complete code, written by the build
    std::string sources;                // the folder exercises/ of the repository
    std::vector<std::string> compiler;  // the compiler command without the file
    std::vector<Exercise> all;
};

std::string text_of(const std::string& path);  // throws std::runtime_error

}  // namespace tally::lesson
